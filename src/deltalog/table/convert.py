"""`convert_to_deltalake`: a Delta table of existing Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from deltalog.context import TableContext
from deltalog.engine import LocalEngine
from deltalog.errors import InvalidInputError, TableExistsError
from deltalog.locations import open_table_store
from deltalog.log.listing import has_table
from deltalog.table.creating import new_table_with_defaults
from deltalog.transaction.properties import CommitOptions
from deltalog.verbs.convert import Convert, configuration_in_place, plan_conversion
from deltalog.verbs.create import as_schema
from deltalog.verbs.do import make_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePath

    from deltalog.progress import Progress
    from deltalog.storage.fsspec_store import StorageOptions
    from deltalog.storage.store import Store
    from deltalog.transaction import (
        CommitProperties,
        PostCommitHookProperties,
    )
    from deltalog.verbs.convert_files import PartitionStrategy


def convert_to_deltalake(  # noqa: PLR0913, PLR0917  # deltalake's signature and some more
    uri: str | PurePath | Store,
    mode: Literal["error", "ignore"] = "error",
    partition_by: Any = None,
    partition_strategy: PartitionStrategy | None = None,
    name: str | None = None,
    description: str | None = None,
    configuration: Mapping[str, str | None] | None = None,
    storage_options: StorageOptions | None = None,
    *,
    collect_stats: bool = True,
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    filesystem: Any = None,
    progress: Progress | None = None,
    default_timezone: str = "UTC",
) -> None:
    """Create a Delta table of existing Parquet files, which stay as they are.

    Args:
        uri: the directory.
        mode: if there is a Delta table, `error` fails and `ignore` leaves it as it is.
        partition_by: the partition columns as a schema. None takes them from directories such as
            `p=1`: `long` or `date` where all values are, else `string`.
        partition_strategy: `hive` for directories such as `year=2020/month=1`, `directory` for
            `2020/1`, in the order of `partition_by`.
        name: of the table.
        description: of the table.
        configuration: table properties.
        storage_options: as for `DeltaTable`.
        collect_stats: whether data is read for statistics. Footers do not suffice: their bounds
            may be truncated or missing. Without, only the number of rows of each file is recorded.
        commit_properties: as for `DeltaTable`, and so are the others.
        post_commithook_properties: which maintenance follows the commit.
        filesystem: instead of the options.
        progress: counts files.
        default_timezone: of times in the names of directories, which carry no zone.

    Raises:
        TableExistsError: there is a Delta table, and the mode is `error`.
        SchemaMismatchError: files have different types for the same column.
        InvalidInputError: there is no Parquet file, or a path lacks a partition column.

    Cost: one listing, all footers; with statistics, the columns that get some.
    """
    store, at = open_table_store(uri, storage_options, filesystem)
    if at is not None or mode not in {"error", "ignore"}:
        raise InvalidInputError(
            f"cannot convert {uri!r} with mode={mode!r}: expected a location without a version, "
            "and the mode error or ignore"
        )
    if has_table(store):
        if mode == "ignore":
            return
        raise TableExistsError(f"cannot convert {store.root}: it is a Delta table already")
    context = TableContext(store=store, time_zone=default_timezone)
    conversion = plan_conversion(
        context,
        partition_by=None if partition_by is None else as_schema(partition_by),
        partition_strategy=partition_strategy,
    )
    wanted = new_table_with_defaults(
        conversion.schema,
        partition_columns=conversion.partition_columns,
        configuration=configuration,
        name=name,
        description=description,
    )
    make_table(
        Convert(conversion=conversion, collect_stats=collect_stats),
        context,
        configuration_in_place(wanted),
        LocalEngine(),
        CommitOptions(properties=commit_properties, hooks=post_commithook_properties),
        progress=progress,
    )
