"""Operations that change table properties, constraints, domains, features and row ids.

Protocol: Table Properties
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog._util.kernels import FALSE, pc
from deltalog._util.similar_names import similar_or_known
from deltalog.data.scan.rows import require_library
from deltalog.errors import InvalidInputError
from deltalog.expressions.nodes import Comparison, Literal, Not
from deltalog.operations.alter.columns import (
    Alteration,
    change_features,
    change_properties,
    check_existing_rows,
    warn_of_lost_access,
    who_loses_access,
)
from deltalog.operations.alter.iceberg import check_files
from deltalog.operations.operation import Operation, Staged
from deltalog.protocol.actions import DomainMetadata, Protocol
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.actions.properties import (
    CONSTRAINT_PREFIX,
    TableProperties,
    canonical_key,
)
from deltalog.protocol.column_mapping import physical_path
from deltalog.protocol.features.clustering import CLUSTERING_DOMAIN, clustering_columns
from deltalog.protocol.features.declarations import check_condition
from deltalog.protocol.features.iceberg_compat import enabled_versions, with_row_tracking
from deltalog.protocol.features.protocol_change import requested_protocol
from deltalog.protocol.features.row_ids import Dialect, high_water_mark_action
from deltalog.protocol.features.support import check_user_domain
from deltalog.protocol.table_change.change import changed_table
from deltalog.protocol.table_change.checks import clustering_domain, is_set_by_writers
from deltalog.protocol.table_change.drop import with_current_row_ids
from deltalog.schema.columns import Path, walk

if TYPE_CHECKING:
    from deltalog.log.snapshot import Snapshot
    from deltalog.operations.engine import Engine
    from deltalog.protocol.configuration import TableConfiguration
    from deltalog.transaction import PendingTransaction

_COMMENT: Final = "comment"


@dataclass(frozen=True, slots=True)
class SetTableProperties(Alteration):
    """Set table properties, and upgrade the protocol if they need it.

    Args:
        properties: key → string. `delta.feature.…` and `delta.min…Version` change the protocol.
        raise_if_not_exists: whether unknown properties with the prefix `delta.` are an error.
    """

    properties: Mapping[str, str]
    raise_if_not_exists: bool = True
    name: ClassVar[str] = "SET TBLPROPERTIES"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the metadata; enabling row tracking also assigns row ids to existing files.

        Raises:
            InvalidInputError: a property is unknown, has an invalid value, or is not allowed for
                this table.
            UnsupportedFeatureError: deltalog could not write the table afterwards.
        """
        if not isinstance(self.properties, Mapping):
            raise InvalidInputError(
                f"cannot set the properties {self.properties!r}: expected a dictionary, key to "
                "string, such as {'delta.appendOnly': 'true'}"
            )
        if not self.properties:
            raise InvalidInputError("there are no table properties to set")
        for key in self.properties:
            if key.lower().startswith(CONSTRAINT_PREFIX):
                raise InvalidInputError(
                    f"cannot set {key} as a property: use add_constraint, which checks the "
                    "existing rows"
                )
        before, lenient = transaction.configuration, not self.raise_if_not_exists
        # As in Delta Spark, `comment` sets the table's description instead of a property.
        stored = {key: text for key, text in self.properties.items() if key != _COMMENT}
        spelled = {_spelled(key, lenient=lenient): text for key, text in stored.items()}
        if len(spelled) < len(stored):
            raise InvalidInputError("a table property is given twice, in different spellings")
        after = change_properties(
            transaction,
            with_row_tracking({**before.metadata.configuration, **spelled}, before.properties),
            description=self.properties.get(_COMMENT),
            arbitrary_properties=lenient,
            warns=False,
        )
        if after.row_ids_enabled and not before.row_ids_enabled:
            stage_all_row_ids(transaction)
        compatible = enabled_versions(after.properties)
        is_new = compatible != enabled_versions(before.properties)
        if compatible and is_new and transaction.snapshot is not None:
            check_files(transaction, transaction.snapshot, compatible[0])
        warn_of_lost_access(transaction, before.protocol)
        return {"properties": dict(self.properties)}


@dataclass(frozen=True, slots=True)
class UnsetTableProperties(Alteration):
    """Remove table properties, so that their defaults apply."""

    keys: Sequence[str]
    raise_if_not_exists: bool = True
    name: ClassVar[str] = "UNSET TBLPROPERTIES"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the metadata.

        Raises:
            InvalidInputError: the table does not have a property, a property is a constraint, or
                only writers may set a property.
        """
        configuration = dict(transaction.configuration.metadata.configuration)
        by_folded = {key.lower(): key for key in configuration}
        for key in self.keys:
            if key.lower().startswith(CONSTRAINT_PREFIX):
                raise InvalidInputError(f"cannot unset {key}: drop the constraint instead")
            found = by_folded.get(key.lower())
            if found is not None and is_set_by_writers(found):
                raise InvalidInputError(
                    f"cannot unset the table property {found}: it is set by writers themselves"
                )
            if found is None and self.raise_if_not_exists:
                raise InvalidInputError(
                    f"cannot unset the table property {key!r}: {transaction.store.root} does not "
                    f"have it{similar_or_known(key, configuration, 'property')}"
                )
            configuration.pop(found or key, None)
        change_properties(transaction, configuration)
        return {"properties": list(self.keys), "ifExists": not self.raise_if_not_exists}


@dataclass(frozen=True, slots=True)
class SetTableName(Alteration):
    """Set the table's name in its metadata. Its name in a catalog does not change."""

    table_name: str
    name: ClassVar[str] = "UPDATE TABLE METADATA"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Change the metadata."""
        changed = changed_table(transaction.configuration, name=self.table_name)
        transaction.set_configuration(changed)
        return {"name": self.table_name}


@dataclass(frozen=True, slots=True)
class SetTableDescription(Alteration):
    """Set the table's description."""

    description: str
    name: ClassVar[str] = "SET TBLPROPERTIES"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the metadata."""
        changed = changed_table(transaction.configuration, description=self.description)
        transaction.set_configuration(changed)
        return {"properties": {_COMMENT: self.description}}


def _spelled(key: str, *, lenient: bool) -> str:
    try:
        return canonical_key(key)
    except InvalidInputError:
        if lenient:
            return key
        raise


# --- Clustering columns


@dataclass(frozen=True, slots=True)
class SetClusteringColumns(Alteration):
    """Set the clustering columns. Existing files do not change until they are rewritten.

    Args:
        columns: names or paths of the columns; None or an empty sequence ends clustering.
    """

    columns: Sequence[str | Path] | None
    name: ClassVar[str] = "CLUSTER BY"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Set the metadata domain of clustering, and add the table feature.

        Raises:
            InvalidInputError: the table is partitioned, or no min and max statistics are collected
                for a column.
        """
        snapshot = transaction.snapshot
        known = {} if snapshot is None else dict(snapshot.domain_metadata)
        before = clustering_columns({**known, **transaction.domains}) or ()
        if not self.columns and not transaction.configuration.supports("clustering"):
            return {}
        # This raises for wrong columns before the next line logs which engines can write no more.
        domain = clustering_domain(transaction.configuration, self.columns or ())
        configuration = change_features(transaction, ["clustering"])
        transaction.set_domain(domain)
        after = clustering_columns({CLUSTERING_DOMAIN: domain}) or ()
        return {
            "oldClusteringColumns": ",".join(_logical(configuration, path) for path in before),
            "newClusteringColumns": ",".join(_logical(configuration, path) for path in after),
        }


def _logical(configuration: TableConfiguration, path: Path) -> str:
    for found, _ in walk(configuration.schema):
        mode = configuration.column_mapping_mode
        if physical_path(configuration.schema, found, mode) == path:
            return ".".join(found)
    return ".".join(path)


# --- The key of the key index


@dataclass(frozen=True, slots=True)
class SetKeyIndex(Alteration):
    """Set the columns of the key index; None removes the key."""

    names: Sequence[str] | None
    name: ClassVar[str] = "SET KEY INDEX"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Set the table property that contains the physical names of the columns.

        Raises:
            InvalidInputError: a column does not exist, or cannot be a key column; or NumPy is not
                installed.
        """
        properties = dict(transaction.configuration.metadata.configuration)
        key = TableProperties.key_index_columns.key
        properties.pop(key, None)
        if self.names is not None:
            names = [self.names] if isinstance(self.names, str) else list(self.names)
            require_library("numpy", extra="pandas")
            from deltalog.data.keys.hashing import check_key  # noqa: PLC0415  # needs NumPy

            columns = check_key(transaction.configuration, names)
            properties[key] = ",".join(map(_quoted, columns))
        change_properties(transaction, properties)
        return {"columns": None if self.names is None else list(names)}


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# --- User-controlled metadata domains


@dataclass(frozen=True, slots=True)
class SetDomainMetadata(Alteration):
    """Set the configuration of a metadata domain, which replaces its previous configuration."""

    domain: str
    configuration: str
    name: ClassVar[str] = "SET DOMAIN METADATA"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Set the domain.

        Raises:
            InvalidInputError: the domain is system-controlled, or the table does not support the
                feature domainMetadata.
        """
        check_user_domain(self.domain)
        if not transaction.configuration.supports("domainMetadata"):
            raise InvalidInputError(
                f"cannot set the metadata domain {self.domain!r} of {transaction.store.root}: add "
                "the table feature domainMetadata first"
            )
        if not isinstance(self.configuration, str):
            raise InvalidInputError(
                "expected the configuration of a metadata domain as a string, found "
                f"{self.configuration!r}"
            )
        transaction.set_domain(DomainMetadata(domain=self.domain, configuration=self.configuration))
        return {"domain": self.domain}


@dataclass(frozen=True, slots=True)
class RemoveDomainMetadata(Alteration):
    """Remove a metadata domain."""

    domain: str
    name: ClassVar[str] = "REMOVE DOMAIN METADATA"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Remove the domain.

        Raises:
            InvalidInputError: the domain is system-controlled, or does not exist.
        """
        check_user_domain(self.domain)
        transaction.remove_domain(self.domain)
        return {"domain": self.domain}


# --- Protocol upgrades


@dataclass(frozen=True, slots=True)
class AddFeature(Alteration):
    """Add table features to the protocol, without setting properties or columns that use them.

    Args:
        features: name or names of the features.
        allow_protocol_versions_increase: whether the reader or writer version may increase.

    Protocol: Table Features
    """

    features: str | Sequence[str]
    allow_protocol_versions_increase: bool = False
    name: ClassVar[str] = "ADD FEATURE"  # the name that deltalake logs
    skips_empty: ClassVar[bool] = False  # Delta Spark and deltalake log each call, too

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the protocol.

        Raises:
            InvalidInputError: a feature is unknown, or a protocol version would have to increase.
            UnsupportedFeatureError: deltalog could not write the table afterwards.
        """
        given = [self.features] if isinstance(self.features, str) else self.features
        names = [str(feature) for feature in given]
        before = transaction.configuration.protocol
        after = changed_table(transaction.configuration, features=names).protocol
        rises = (
            after.min_reader_version > before.min_reader_version
            or after.min_writer_version > before.min_writer_version
        )
        if rises and not self.allow_protocol_versions_increase:
            lost = who_loses_access(before, after)
            raise InvalidInputError(
                f"cannot add {', '.join(names)} to {transaction.store.root}: the protocol would "
                f"change from {_versions(before)} to {_versions(after)}"
                + (f", and {lost}" if lost else "")
                + "; pass allow_protocol_versions_increase=True to allow this"
            )
        change_features(transaction, names)
        return {"name": names}


@dataclass(frozen=True, slots=True)
class UpgradeProtocol(Alteration):
    """Raise the protocol versions. Lower versions than the table's change nothing.

    Protocol: Protocol Evolution
    """

    reader_version: int
    writer_version: int
    name: ClassVar[str] = "UPGRADE PROTOCOL"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the protocol.

        Raises:
            InvalidInputError: a version is not an integer, or there is no such protocol version.
        """
        versions: tuple[object, ...] = (self.reader_version, self.writer_version)
        if not all(type(version) is int for version in versions):
            raise InvalidInputError(
                f"expected protocol versions as whole numbers, found {versions}"
            )
        asked, _ = requested_protocol(
            {
                "delta.minReaderVersion": str(self.reader_version),
                "delta.minWriterVersion": str(self.writer_version),
            }
        )
        change_features(transaction, protocol=asked)
        return protocol_parameters(transaction)


def protocol_parameters(transaction: PendingTransaction) -> dict[str, Any]:
    """Return the protocol as Delta Spark writes it to `operationParameters`."""
    protocol = transaction.configuration.protocol
    readers, writers = protocol.reader_features, protocol.writer_features
    return {
        "newProtocol": {
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "readerFeatures": None if readers is None else list(readers),
            "writerFeatures": None if writers is None else list(writers),
        }
    }


def _versions(protocol: Protocol) -> str:
    return f"({protocol.min_reader_version}, {protocol.min_writer_version})"


# --- Row ids for files that were written without row tracking


BATCH_FILES: Final = 100_000
"""The maximum number of files to which one commit assigns row ids, as in Delta Spark."""


@dataclass(frozen=True, slots=True)
class BackfillRowIds(Operation[Staged[int]]):
    """Assign row ids to files without row ids; the result is the number of these files.

    For a large table, run the operation until the result is 0. Other writers can write between the
    runs.

    Args:
        max_files: the maximum number of files of one run.

    Protocol: Row Tracking (Enabling Row Tracking)
    """

    max_files: int = BATCH_FILES
    name: ClassVar[str] = "ROW TRACKING BACKFILL"

    def stage(self, transaction: PendingTransaction, engine: Engine) -> Staged[int]:
        """Add the files again, which assigns row ids to them.

        Raises:
            InvalidInputError: the table does not support row tracking.
        """
        del engine
        if transaction.configuration.row_id_dialect is None:
            raise InvalidInputError(
                f"cannot assign row ids to the files of {transaction.store.root}: add the table "
                "feature rowTracking first"
            )
        files = _without_ids(transaction).slice(0, self.max_files)
        transaction.record_read_files(files)
        transaction.add_again(files)
        transaction.parameters["batchId"] = "0"
        return Staged(files.num_rows)


@dataclass(frozen=True, slots=True)
class UpgradeRowIds(Alteration):
    """Migrate a table from the draft specification of row ids to row tracking.

    Row ids do not change. The draft has no row commit versions: every existing row gets the version
    of this commit. Writers that know only the draft cannot write the table afterwards; Delta Spark
    can.
    """

    name: ClassVar[str] = "UPGRADE PROTOCOL"

    def change(self, transaction: PendingTransaction) -> dict[str, Any]:
        """Change the configuration, and add every file again.

        Raises:
            InvalidInputError: the table does not have row ids of the draft, or has too many files
                for one commit.
        """
        snapshot = transaction.snapshot
        transaction.set_configuration(with_current_row_ids(transaction.configuration))
        if snapshot is not None:
            _add_files_again(transaction, snapshot)
        return protocol_parameters(transaction)


def stage_all_row_ids(transaction: PendingTransaction) -> None:
    """Assign row ids to all files without them, in the commit that enables row tracking.

    Raises:
        InvalidInputError: there are too many files for one commit.
    """
    files = _without_ids(transaction)
    if files.num_rows > BATCH_FILES:
        raise InvalidInputError(
            f"cannot enable row tracking of {transaction.store.root} in one commit: "
            f"{files.num_rows} files have no row ids; add the table feature rowTracking with "
            "alter.add_feature, call alter.backfill_row_ids until it returns 0, and then set the "
            "property"
        )
    if files.num_rows:
        # A read of the whole table conflicts with every concurrent change of files. Otherwise, a
        # file that another commit adds could lack row ids, and a file that another commit removes
        # would be added again.
        transaction.record_read(None)
        transaction.add_again(files)


def _add_files_again(transaction: PendingTransaction, snapshot: Snapshot) -> None:
    files = _kept(snapshot.files())
    if files.num_rows > BATCH_FILES:
        raise InvalidInputError(
            f"cannot upgrade the row ids of {transaction.store.root}: the table has "
            f"{files.num_rows} files, but one commit may add at most {BATCH_FILES} files again; "
            "compact the table first"
        )
    transaction.record_read(None)
    versions: Any = files.column("defaultRowCommitVersion")
    filled = pc.fill_null(versions, snapshot.version + 1)
    place = files.column_names.index("defaultRowCommitVersion")
    transaction.add_again(files.set_column(place, "defaultRowCommitVersion", filled))
    mark = snapshot.row_id_high_water_mark
    if mark is not None and not files.column("baseRowId").null_count:
        # Set the mark here only if all files have row ids. Otherwise the commit assigns row ids,
        # and sets the mark itself.
        action = high_water_mark_action(Dialect.CURRENT, mark, preserved=True)
        if isinstance(action, DomainMetadata):
            transaction.set_domain(action)


def _without_ids(transaction: PendingTransaction) -> pa.Table:
    if transaction.snapshot is None:
        return FILE_SCHEMA.empty_table()
    has_ids: Any = transaction.snapshot.files(["baseRowId"]).column("baseRowId")
    if not has_ids.null_count:
        return FILE_SCHEMA.empty_table()
    return _kept(transaction.snapshot.files().filter(pc.is_null(has_ids)))


def _kept(files: pa.Table) -> pa.Table:
    """Return the files with `dataChange` false, to add them again without a change of rows."""
    flags = pa.repeat(FALSE, files.num_rows)
    return files.set_column(files.column_names.index("dataChange"), "dataChange", flags)


# --- CHECK constraints


@dataclass(frozen=True, slots=True)
class AddConstraints(Alteration):
    """Add CHECK constraints.

    Args:
        constraints: name → condition in Spark SQL. Names are case-insensitive.
    """

    constraints: Mapping[str, str]
    name: ClassVar[str] = "ADD CONSTRAINT"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Check the existing rows, and set the constraints.

        Raises:
            ConstraintViolationError: a condition is false or NULL for existing rows.
            InvalidInputError: a constraint of this name exists, or a string is not a valid
                condition over the columns.

        Cost: for each condition, reads its columns from the files that data skipping does not
        exclude.
        """
        if not isinstance(self.constraints, Mapping):
            raise InvalidInputError(
                f"cannot add the constraints {self.constraints!r}: expected a dictionary, name to "
                "SQL"
            )
        if not self.constraints:
            raise InvalidInputError("there are no constraints to add")
        for name, text in self.constraints.items():
            _add_constraint(transaction, name, text)
        return {"name": name, "expr": text}


@dataclass(frozen=True, slots=True)
class DropConstraint(Alteration):
    """Drop a CHECK constraint by its name."""

    constraint: str
    raise_if_not_exists: bool = True
    name: ClassVar[str] = "DROP CONSTRAINT"

    def change(self, transaction: PendingTransaction) -> dict[str, str]:
        """Remove the table property that contains the constraint.

        Raises:
            InvalidInputError: the table has no such constraint.
        """
        name = self.constraint
        configuration = dict(transaction.configuration.metadata.configuration)
        key = _key_of(configuration, name)
        if key is None:
            if self.raise_if_not_exists:
                start = len(CONSTRAINT_PREFIX)
                known = [key[start:] for key in configuration if key.startswith(CONSTRAINT_PREFIX)]
                raise InvalidInputError(
                    f"cannot drop the constraint {name!r}: {transaction.store.root} does not have "
                    f"it{similar_or_known(name, known, 'constraint')}"
                )
            return {"name": name, "existed": "false"}
        text = configuration.pop(key)
        change_properties(transaction, configuration)
        return {"name": name, "expr": text, "existed": "true"}


def _add_constraint(transaction: PendingTransaction, name: str, text: str) -> None:
    configuration = dict(transaction.configuration.metadata.configuration)
    if not name:
        raise InvalidInputError("cannot add a constraint: its name is empty")
    taken = _key_of(configuration, name)
    if taken is not None:
        raise InvalidInputError(
            f"cannot add the constraint {name!r}: the name is taken by "
            f"{configuration[taken]!r}; drop it first"
        )
    what = f"the CHECK constraint {name!r}"
    condition = check_condition(what, text, transaction.configuration.schema)
    # A row violates a constraint if the condition is false or NULL (requirement CON-02).
    violation = Not(Comparison("<=>", condition, Literal(value=True)))
    check_existing_rows(transaction, f"{what} ({text})", violation, constraint=name)
    change_properties(transaction, {**configuration, CONSTRAINT_PREFIX + name_key(name): text})


def _key_of(configuration: Mapping[str, str], name: str) -> str | None:
    wanted = CONSTRAINT_PREFIX + name_key(name)
    return next((key for key in configuration if _key_in_lower_case(key) == wanted), None)


def _key_in_lower_case(key: str) -> str:
    """Return a constraint's property key in lower case.

    The name is lowered separately, because the lower case of Σ depends on the adjacent letters.
    """
    start = len(CONSTRAINT_PREFIX)
    return key[:start].lower() + name_key(key[start:])
