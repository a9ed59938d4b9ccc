"""How near to this machine an address is: a server may name no file nearer than itself.

A server of the internet that named files at loopback or private addresses would let this machine
ask its own neighbours, of which the server learns by times and errors.
"""

from __future__ import annotations

import asyncio
from enum import IntEnum
from ipaddress import IPv6Address, IPv6Network, ip_address
from socket import AF_UNSPEC, SOCK_STREAM, AddressFamily
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Address

_NAT64: Final = IPv6Network("64:ff9b::/96")


class Reach(IntEnum):
    """From where an address can be reached; a higher value is nearer to this machine."""

    INTERNET = 0
    NETWORK = 1
    MACHINE = 2


def reach_of(address: str) -> Reach:
    """Return the reach of an IP address.

    Link-local addresses count as this machine's: clouds give credentials there.
    """
    found = _inner(ip_address(address))
    if found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast:
        return Reach.MACHINE
    return Reach.INTERNET if found.is_global else Reach.NETWORK


def reach_of_host(host: str) -> Reach | None:
    """Return the reach of an address, or of a name of this machine; None for other names."""
    try:
        return reach_of(host)
    except ValueError:
        name = host.rstrip(".").lower()
        is_own = name == "localhost" or name.endswith(".localhost")
        return Reach.MACHINE if is_own else None


def reach_of_all(addresses: Iterable[str]) -> Reach:
    """Return the reach of the farthest of some addresses; without one, that of the internet."""
    return min(map(reach_of, addresses), default=Reach.INTERNET)


async def resolve_addresses(host: str) -> list[str]:
    """Return the addresses of a name; none if it has none here."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, family=AF_UNSPEC, type=SOCK_STREAM)
    except OSError:
        return []
    internet = {AddressFamily.AF_INET, AddressFamily.AF_INET6}
    return [str(address[0]) for family, _, _, _, address in found if family in internet]


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if not isinstance(address, IPv6Address):
        return address
    if address in _NAT64:
        return ip_address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address
