"""Metadata of a release that depends on its repository: links of the README, and project URLs.

`README.md` links to files of the repository by relative paths, which only work within the
repository. The package index shows the README elsewhere, so the release workflow builds packages
with absolute links. The environment variables of GitHub's workflows name the repository; without
them, the README is packaged unchanged.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE: Final = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s]+)")
_IMAGE: Final = re.compile(r"!\[[^\]]*\]\([^)]*\)")


def absolute_links(text: str, repository: str, ref: str) -> str:
    """Return Markdown whose relative links lead to a repository.

    Args:
        text: the Markdown.
        repository: URL of the repository.
        ref: tag, branch or commit.
    """

    def linked(kind: str, text: str) -> str:
        return _RELATIVE.sub(lambda found: f"{repository}/{kind}/{ref}/{found[1]}", text)

    with_images = _IMAGE.sub(lambda found: linked("raw", found[0]), text)
    return linked("blob", with_images)


class ReleaseMetadata(MetadataHookInterface):
    """Sets the README and the URLs of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        """See hatchling's metadata hooks."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        name = os.environ.get("GITHUB_REPOSITORY")
        if name:
            server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
            repository = f"{server}/{name}"
            text = absolute_links(text, repository, os.environ.get("GITHUB_REF_NAME", "HEAD"))
            metadata["urls"] = {"Source": repository, "Issues": f"{repository}/issues"}
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
