"""Redirect imports of modules that have moved. Old names work for one release, also in pickles.

Protocol: none
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

_PACKAGE: Final = "deltalog."
_NOW: Final = {
    "_util.cached": ["cached", "frozen", "inherited"],
    "_util.cards": ["cards", "progress"],
    "_util.clock": ["clock", "schema.primitives.civil"],
    "_util.escaping": ["escaping", "names"],
    "_util.json": ["_json"],
    "_util.kernels": ["kernels"],
    "_util.lazy_names": ["_lazy_names"],
    "_util.observing": ["observing"],
    "_util.paths": ["paths"],
    "_util.store_kinds": ["store_kinds"],
    "_util.version": ["_version"],
    "catalogs.glue": ["catalogs.glue_requests"],
    "catalogs.protocol": ["catalogs.changes", "catalogs.named", "catalogs.transacting"],
    "catalogs.table_uri": ["locations"],
    "catalogs.unity.api": ["catalogs.unity.lenders"],
    "catalogs.unity.catalog": ["catalogs.unity.names"],
    "catalogs.unity.client": ["catalogs.unity.settings"],
    "catalogs.unity.committer": ["catalogs.unity.uniform", "catalogs.unity.updates"],
    "cli.application": ["cli.output"],
    "cli.commands": ["cli.reading"],
    "cli.tools": ["cli.completion", "cli.share", "cli.simulate"],
    "data.scan": ["scan", "scan.task"],
    "data.scan.pieces": ["scan.row_parts", "scan.task_rows"],
    "data.scan.plan": ["scan.explanation"],
    "data.scan.polars_files": ["scan.polars"],
    "data.scan.prune": ["scan.judge"],
    "data.scan.row_groups": ["scan.checkpoint_groups"],
    "data.scan.rows": ["scan.pandas"],
    "data.scan.task": ["scan.runs", "scan.spec"],
    "data.scan.top_rows": ["data.scan.top"],
    "data.scan.transform": ["scan.deletion_vectors", "scan.promote", "scan.rebase"],
    "data.write": ["write"],
    "data.write.changes": ["write.replace_where"],
    "data.write.encode": ["write.nested_paths"],
    "data.write.files": ["write.parts"],
    "data.write.fit": ["write.violations"],
    "data.write.open_files": ["write.partition"],
    "data.write.options": ["write.spec"],
    "data.write.source": ["write.data", "write.polars"],
    "expressions.aliases": ["expressions.macros"],
    "expressions.analyze": ["expressions.resolver", "expressions.zones"],
    "expressions.arithmetic": ["expressions.tries"],
    "expressions.arrays": ["expressions.maps"],
    "expressions.arrow": ["expressions.folding", "expressions.narrowing"],
    "expressions.arrow_filters": ["expressions.arrow_pickles"],
    "expressions.casts": ["expressions.nested"],
    "expressions.comparing": ["expressions.collation_keys", "expressions.lower_characters"],
    "expressions.containers": ["expressions.lambdas"],
    "expressions.datetimes": ["expressions.calendars"],
    "expressions.functions": [
        "expressions.moment_signatures",
        "expressions.nested_signatures",
        "expressions.refusals",
    ],
    "expressions.java_functions": ["expressions.mathematics", "expressions.phrases"],
    "expressions.java_math": ["expressions.java_angles", "expressions.java_powers"],
    "expressions.nodes": ["expressions.node_forms"],
    "expressions.numbers": ["expressions.numerals"],
    "expressions.ordering": ["expressions.sql_order"],
    "expressions.rows": ["expressions.budget"],
    "expressions.spark_dialect": ["expressions.spark_values"],
    "expressions.spark_tokens": ["expressions.comments"],
    "expressions.sql_nodes": ["expressions.row_values", "expressions.sql_types"],
    "expressions.sql_session": ["expressions.text_rules", "sql_session"],
    "expressions.string_forms": ["expressions.texts"],
    "expressions.strings": ["expressions.regexps"],
    "expressions.substrait": ["expressions.protobuf"],
    "iceberg.deleted_rows": ["iceberg.equalities", "iceberg.positions"],
    "iceberg.manifests": ["iceberg.avro"],
    "iceberg.metadata": ["iceberg.schema"],
    "iceberg.source": ["iceberg.deletes", "iceberg.source_schema"],
    "iceberg.sync": ["iceberg.expiry", "iceberg.snapshots", "iceberg.vectors"],
    "integrations.tasks": [
        "distributed",
        "distributed.groups",
        "distributed.reading",
        "distributed.sending",
        "distributed.writing",
    ],
    "log.checkpoints": ["checkpoints"],
    "log.checkpoints.reader": ["checkpoints.stats"],
    "log.checkpoints.rows": ["checkpoints.row_files", "checkpoints.schema"],
    "log.checksum": ["log.histograms"],
    "log.context": ["catalog", "context"],
    "log.listing": ["log.hint"],
    "log.many_commits": ["actions.arrow_lines", "log.together"],
    "log.replay": ["replay", "replay.keys", "replay.state"],
    "log.snapshot": ["snapshot"],
    "log.snapshot.snapshot": ["log.absence", "snapshot.load"],
    "log.snapshot.splits": ["checkpoints.splits", "log.snapshot.cut"],
    "operations": ["verbs"],
    "operations.alter.columns": [
        "verbs.alter.existing_rows",
        "verbs.alter.identity",
        "verbs.alter.staging",
        "verbs.alter.stats_columns",
    ],
    "operations.alter.properties": [
        "verbs.alter.clustering",
        "verbs.alter.constraints",
        "verbs.alter.domains",
        "verbs.alter.protocol",
        "verbs.alter.row_tracking",
    ],
    "operations.arguments": ["arguments", "conditions"],
    "operations.changes": ["rows"],
    "operations.changes.apply": ["rows.decide", "rows.find"],
    "operations.changes.bins": ["rows.small_files"],
    "operations.changes.external_sort": ["rows.gather"],
    "operations.changes.kept_groups": ["rows.copy"],
    "operations.changes.merge.local": ["rows.merge.new_rows"],
    "operations.changes.merge.match": ["rows.merge.prune"],
    "operations.changes.merge.pairs": ["rows.merge.join", "rows.merge.ranges"],
    "operations.changes.merge.plan": [
        "rows.merge.clauses",
        "rows.merge.condition",
        "rows.merge.evolution",
    ],
    "operations.changes.merge.source": ["rows.merge.names"],
    "operations.changes.request": ["rows.planned"],
    "operations.changes.task_writes": ["rows.write_task"],
    "operations.clone": ["verbs.cloned_files", "verbs.foreign_row_ids"],
    "operations.commit_files": ["verbs.file_actions"],
    "operations.convert_files": ["verbs.new_vectors", "verbs.sink_log"],
    "operations.engine": ["engine", "engine.listing", "engine.local", "engine.protocol"],
    "operations.execute": ["operations.do", "verbs.do"],
    "operations.operation": ["verbs.verb"],
    "operations.optimize.cluster": [
        "verbs.optimize.cubes",
        "verbs.optimize.curves",
        "verbs.optimize.order",
        "verbs.optimize.ranks",
    ],
    "operations.optimize.compact": ["verbs.optimize.auto", "verbs.optimize.uniform"],
    "operations.optimize.rewrite": ["verbs.optimize.bins", "verbs.optimize.result"],
    "operations.restore": ["verbs.repair"],
    "operations.vacuum": ["verbs.needed_files", "verbs.vacuum_candidates"],
    "operations.write": ["verbs.append"],
    "protocol.actions": ["actions"],
    "protocol.actions.codec": ["actions.commit_rules", "actions.descriptors"],
    "protocol.actions.properties": ["actions.property_values", "actions.settable"],
    "protocol.column_mapping": ["column_mapping"],
    "protocol.configuration": ["configuration"],
    "protocol.deletion_vectors": [
        "deletion_vectors",
        "deletion_vectors.bitmap",
        "deletion_vectors.codec",
    ],
    "protocol.features": ["features"],
    "protocol.features.declarations": ["features.computed_columns", "features.constraints"],
    "protocol.features.iceberg_compat": ["features.iceberg_writer_compat"],
    "protocol.features.schema_needs": ["features.schema_traits"],
    "protocol.features.registry": ["features.names", "features.previews"],
    "protocol.features.support": ["features.guards"],
    "protocol.partition_values": [
        "partition_values",
        "partition_values.directories",
        "partition_values.values",
    ],
    "protocol.stats": ["stats"],
    "protocol.stats.collect": ["stats.encode"],
    "protocol.stats.parse": ["stats.batches", "stats.leaves", "stats.rows"],
    "protocol.stats.ranges": ["stats.bounds", "stats.claims"],
    "protocol.stats.rewrite": ["stats.spans"],
    "protocol.table_change": ["table_change"],
    "protocol.table_change.change": ["table_change.schema_change"],
    "protocol.table_change.checks": ["table_change.clustering", "table_change.properties"],
    "query.duckdb": ["query.builder", "query.counted"],
    "query.lexer": ["query.pipes"],
    "query.names": ["query.relations"],
    "query.native": ["query.common_types", "query.duckdb_types", "query.pruning"],
    "query.query_trees": ["query.aggregates", "query.safe_constants"],
    "query.result_columns": ["query.result_names"],
    "query.results": ["statements.results"],
    "query.running": ["query.chains", "query.duckdb_functions", "query.shown"],
    "query.tables": ["query.spelled", "table.queries"],
    "query.translate": ["query.dialect", "query.selections"],
    "schema.check": ["schema.readable"],
    "schema.columns": ["schema.tree"],
    "schema.evolve": ["schema.alter", "schema.widening"],
    "schema.metadata_columns": ["metadata_columns", "schema.metadata_fields"],
    "schema.primitives.moments": ["schema.primitives.spans"],
    "schema.primitives.strings": ["schema.primitives.texts"],
    "schema.primitives.table": ["schema.primitives.meant"],
    "schema.types": ["schema.collation_names"],
    "schema.variant": ["variant"],
    "schema.variant.reader": ["variant.json_text"],
    "schema.variant.shredding": ["variant.writer"],
    "sharing.client.answers": ["sharing.client.actions"],
    "sharing.client.follow": ["sharing.client.changes"],
    "sharing.client.rest": ["sharing.client.auth"],
    "sharing.client.shown_version": ["sharing.client.hints"],
    "sharing.client.store": ["sharing.client.urls"],
    "sharing.server.application": [
        "sharing.server.operations",
        "sharing.server.readiness",
        "sharing.server.telemetry",
    ],
    "sharing.server.cache": ["sharing.server.owned"],
    "sharing.server.changes": [
        "sharing.server.commit_range",
        "sharing.server.view_changes",
        "sharing.server.view_lines",
    ],
    "sharing.server.config_file": ["sharing.server.config_document"],
    "sharing.server.config_settings": ["sharing.server.config_section"],
    "sharing.server.endpoints": ["sharing.server.credentials", "sharing.server.listing"],
    "sharing.server.middleware": ["sharing.server.metrics", "sharing.server.work"],
    "sharing.server.pages": ["sharing.server.hints"],
    "sharing.server.queries": ["sharing.server.query", "sharing.server.view_query"],
    "sharing.server.recipients": ["sharing.server.oauth"],
    "sharing.server.serving": ["sharing.server.certificates"],
    "sharing.wire.lines": ["sharing.wire.listing"],
    "sharing.wire.requests": ["sharing.wire.capabilities", "sharing.wire.errors"],
    "spark.cluster_session": ["spark.cluster_conditions"],
    "spark.engine.checkpoint": ["spark.engine.path_ranks"],
    "spark.engine.engine": ["spark.engine.bins", "spark.engine.files", "spark.engine.select"],
    "spark.engine.row_tasks": ["spark.engine.assign"],
    "spark.engine.rows": ["spark.engine.native_rows", "spark.engine.write_tasks"],
    "spark.merge": ["spark.optimize"],
    "spark.reading.batch_source": ["spark.reading.filters", "spark.reading.splits"],
    "spark.reading.by_options": ["spark.reading.native_changes"],
    "spark.reading.conditions": ["spark.reading.fitness"],
    "spark.reading.file_values": ["spark.reading.file_keys"],
    "spark.reading.native": [
        "spark.reading.hive_layout",
        "spark.reading.not_null",
        "spark.reading.task_frame",
    ],
    "spark.reading.scan": ["spark.reading.state_frames"],
    "spark.registration": ["spark.door"],
    "spark.results": ["spark.tending"],
    "spark.session.known_settings": ["spark.session.refusals"],
    "spark.session.names": ["spark.session.catalogs"],
    "spark.session.opening": ["spark.session.hadoop"],
    "spark.session.settings": ["spark.session.formats"],
    "spark.session.splicing": ["spark.session.completing", "spark.session.foreign"],
    "spark.sharing.batch": ["spark.sharing.frames"],
    "spark.source": ["spark.sharing.source"],
    "spark.spellings.frames": ["spark.spellings.rows", "spark.spellings.streams"],
    "spark.spellings.tables": ["spark.spellings.formatting", "spark.spellings.names"],
    "spark.statements": ["spark.identifiers", "spark.others", "spark.unread"],
    "spark.streaming.sink": ["spark.streaming.merge_batches"],
    "spark.streaming.source": ["spark.streaming.micro_batches", "spark.streaming.read_limits"],
    "spark.writing.frame": ["spark.writing.named"],
    "spark.writing.writer": ["spark.writing.fitted"],
    "statements.catalog_names": ["statements.mentioned", "statements.namespaces"],
    "statements.changes": ["statements.insert"],
    "statements.connection": ["statements.pep249", "statements.script"],
    "statements.create": [
        "statements.columns",
        "statements.namespace_changes",
        "statements.properties",
    ],
    "statements.local": ["statements.query_rows"],
    "statements.maintenance": ["statements.upkeep"],
    "statements.reader": ["statements.conditions", "statements.words"],
    "statements.shows": ["statements.definition"],
    "statements.statement": ["statements.slices"],
    "storage.faults": ["storage.unreached"],
    "storage.http": ["http"],
    "storage.http.client": ["http.options", "http.reach", "http.retry", "http.sessions"],
    "storage.http.replies": ["http.faults", "http.texts"],
    "storage.parquet.byte_sources": ["storage.byte_sources"],
    "storage.parquet.excerpt": ["storage.parquet_excerpt", "storage.parquet_small"],
    "storage.parquet.facts": ["storage.parquet_facts", "storage.parquet_sizes"],
    "storage.parquet.footer": ["storage.parquet_footer"],
    "storage.parquet.groups": ["storage.parquet_groups", "storage.parquet_schema"],
    "storage.parquet.paged": ["storage.parquet_paged"],
    "storage.parquet.pages": ["storage.parquet_pages"],
    "storage.parquet.parts": [
        "storage.parquet_bounds",
        "storage.parquet_decode",
        "storage.parquet_parts",
    ],
    "storage.parquet.patch": ["storage.parquet_column_pages", "storage.parquet_patch"],
    "storage.parquet.sink": ["storage.parquet_sink"],
    "storage.parquet.splice": [
        "storage.parquet_indexes",
        "storage.parquet_page_headers",
        "storage.parquet_splice",
    ],
    "storage.parquet.thrift": ["storage.thrift", "storage.thrift_fields"],
    "storage.stores.azure": ["storage.azure"],
    "storage.stores.filesystems": ["storage.filesystems", "storage.folders"],
    "storage.stores.fsspec_files": [
        "storage.fsspec_files",
        "storage.memory",
        "storage.ranged_file",
        "storage.web",
    ],
    "storage.stores.google": ["storage.google"],
    "storage.stores.local_files": ["storage.local_files"],
    "storage.stores.obstore_files": ["storage.obstore_files", "storage.obstore_settings"],
    "storage.stores.s3": ["storage.s3"],
    "table.catalog_transaction": ["table.catalog_recovery"],
    "table.creating": ["table.target"],
    "table.inspect": ["insight"],
    "table.inspect.description": ["insight.commit_history"],
    "table.inspect.diff": ["insight.metadata_diff"],
    "table.inspect.display": ["display"],
    "table.inspect.doctor.examine": ["insight.doctor.protocol"],
    "table.inspect.doctor.files": ["insight.doctor.pages", "insight.doctor.statistics"],
    "table.inspect.doctor.log": ["insight.doctor.checkpoints"],
    "table.inspect.doctor.report": ["insight.doctor.patient"],
    "table.inspect.follow": ["insight.follow_steps"],
    "table.inspect.plot": ["plot"],
    "table.inspect.plot.plots": ["plot.measures"],
    "table.optimize": ["table.vacuum"],
    "testing.conformance.board": ["testing.conformance.corpus", "testing.conformance.readers"],
    "testing.simulation.history": ["testing.simulation.schedule"],
    "testing.simulation.model": ["testing.simulation.process", "testing.simulation.store"],
    "testing.simulation.workers": ["testing.simulation.writers", "testing.stalls"],
    "testing.stores": ["testing.catalog"],
    "transaction.assemble": [
        "transaction.commit_base",
        "transaction.commit_checks",
        "transaction.file_lines",
        "transaction.provenance",
        "transaction.row_id_assignment",
    ],
    "transaction.commit_loop": ["transaction.attempt", "transaction.watched"],
    "transaction.committer": ["transaction.backoff"],
    "transaction.conflicts": ["transaction.metadata_changes", "transaction.winners"],
    "transaction.journal": ["transaction.prepared"],
    "transaction.maintenance": ["transaction.upkeep", "upkeep"],
    "transaction.maintenance.checkpoint": ["transaction.upkeep.checkpoint"],
    "transaction.maintenance.checksum": ["transaction.upkeep.checksum", "upkeep.permission"],
    "transaction.maintenance.cleanup": ["transaction.upkeep.cleanup", "upkeep.log_compaction"],
    "transaction.pending": ["transaction.discard", "transaction.file_actions"],
    "transaction.properties": ["transaction.read_set"],
    "transaction.rebase": ["transaction.row_level"],
}
"""Current module → the modules before version 0.3 that it replaces, without `deltalog.`."""

MOVED: Final = {old: now for now, replaced in _NOW.items() for old in replaced}
"""Module before version 0.3 → current module."""


def new_name(name: str) -> str | None:
    """Return the new name of a module that has moved; None for other modules.

    Args:
        name: the full name, such as `deltalog.scan.plan`.
    """
    if not name.startswith(_PACKAGE):
        return None
    head, inner = name.removeprefix(_PACKAGE), ""
    while head not in MOVED:
        head, dot, last = head.rpartition(".")
        if not dot:
            return None
        inner = f".{last}{inner}"
    return _PACKAGE + MOVED[head] + inner


class _MovedLoader:
    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Let the import system create an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Replace the old module by the current module."""
        name = new_name(module.__name__)
        assert name is not None  # noqa: S101  # the finder accepts only old names
        warnings.warn(
            f"{module.__name__} is now {name}; the next release removes the old name",
            DeprecationWarning,
            stacklevel=2,
        )
        found = import_module(name)
        if not hasattr(found, "__path__"):
            found.__path__ = []  # the old module may be a package with submodules
        sys.modules[module.__name__] = found


class MovedFinder:
    """Import finder for the old names of modules."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  # required by the interface
        target: ModuleType | None = None,  # noqa: ARG002  # as above
    ) -> ModuleSpec | None:
        """Return a spec for a module that has moved."""
        if new_name(fullname) is None:
            _explain_absent(fullname)
            return None
        loader: Any = _MovedLoader()  # not an `importlib.abc.Loader`, which is slow to import
        return ModuleSpec(fullname, loader, is_package=True)


_ABSENT: Final = {
    **dict.fromkeys(("exception", "error"), "use deltalog.errors"),
    **dict.fromkeys(
        ("types", "datatypes", "data_types", "type"),
        "a type is its name, as in deltalog.Field('id', 'long')",
    ),
    **dict.fromkeys(
        ("tables", "delta_table", "deltatable", "DeltaLog", "Table"), "use deltalog.DeltaTable"
    ),
    **dict.fromkeys(("share", "delta_sharing"), "use deltalog.sharing"),
    **dict.fromkeys(
        ("functions", "expr", "exprs"), "use deltalog.col and deltalog.lit, or conditions in SQL"
    ),
    **dict.fromkeys(
        ("pandas", "arrow", "pyarrow", "duckdb"),
        "use the methods of deltalog.DeltaTable, such as to_pandas()",
    ),
    **dict.fromkeys(("merge", "optimize", "vacuum"), "use the method of deltalog.DeltaTable"),
    **dict.fromkeys(("write", "writers"), "use deltalog.write_deltalake"),
    **dict.fromkeys(("transactions", "commit_properties"), "use deltalog.transaction"),
}
"""Modules of other libraries, without `deltalog.` → what to use instead."""


def _explain_absent(name: str) -> None:
    """Raise for the name of a module that does not exist, if it is clear what is meant."""
    if not name.startswith(_PACKAGE):
        return
    inner = name.removeprefix(_PACKAGE)
    if advice := _ABSENT.get(inner) or _of_name(inner):
        raise ModuleNotFoundError(f"No module named {name!r}: {advice}", name=name)


def _of_name(name: str) -> str:
    """Return what to write for the import of a class or function as a module, as in Java."""
    package = sys.modules[_PACKAGE.rstrip(".")]
    is_known = name in package.__all__
    return f"it is a name in a module, so use from deltalog import {name}" if is_known else ""


def find_moved_modules() -> None:
    """Install the finder for the old names of modules."""
    sys.meta_path.insert(0, MovedFinder())
