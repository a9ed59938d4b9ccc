"""Tables that Iceberg's own Java library makes, one step after the other, inside the reference.

Runs where `reference_driver` runs. A step is a list: its name and its arguments. Rows are given as
objects from field id to value, in the form of Iceberg's single values in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


class IcebergMaker:
    """One table, and the files that were written for it and may be committed."""

    def __init__(self, session: Any, story: Mapping[str, Any]) -> None:
        self._gateway = session._sc._gateway
        jvm = session._jvm
        self._java = jvm.java.util
        self._iceberg = jvm.org.apache.iceberg
        properties = self._java.HashMap()
        for name, text in story["properties"].items():
            properties.put(name, text)
        schema = self._iceberg.SchemaParser.fromJson(json.dumps(story["schema"]))
        spec = self._iceberg.PartitionSpecParser.fromJson(schema, json.dumps(story["spec"]))
        tables = self._iceberg.hadoop.HadoopTables(session._jsc.hadoopConfiguration())
        self._table = tables.create(schema, spec, properties, story["iceberg_story"])
        self._files: dict[str, Any] = {}
        self._written = 0

    def tell(self, steps: Sequence[Sequence[Any]]) -> None:
        """Do all steps."""
        for name, *arguments in steps:
            step: Callable[..., None] = getattr(self, f"_{name}")
            step(*arguments)

    def _write(self, name: str, rows: Sequence[Row]) -> None:
        """Write a data file, of rows of one partition, under the table's spec."""
        schema, spec = self._table.schema(), self._table.spec()
        records = [self._record(schema, row) for row in rows]
        writer = self._factory().newDataWriter(
            self._output(spec, records[0]), spec, self._key(spec, records[0])
        )
        for record in records:
            writer.write(record)
        writer.close()
        self._files[name] = writer.toDataFile()

    def _write_positions(self, name: str, scope: str, rows: Sequence[tuple[str, int]]) -> None:
        """Write a position delete file, in the partition of a data file."""
        spec, partition = self._scope(scope)
        writer = self._factory().newPositionDeleteWriter(
            self._output_of(spec, partition), spec, partition
        )
        delete = self._iceberg.deletes.PositionDelete.create()
        paths = sorted((self._files[data].location(), position) for data, position in rows)
        for path, position in paths:
            writer.write(delete.set(path, position))
        writer.close()
        self._files[name] = writer.toDeleteFile()

    def _write_equalities(
        self, name: str, scope: str | None, ids: Sequence[int], rows: Sequence[Row]
    ) -> None:
        """Write an equality delete file: in the partition of a data file, or (None) of no spec."""
        wanted = self._java.HashSet()
        numbers = self._gateway.new_array(self._gateway.jvm.int, len(ids))
        for place, number in enumerate(ids):
            wanted.add(number)
            numbers[place] = number
        schema = self._iceberg.types.TypeUtil.select(self._table.schema(), wanted)
        factory = self._builder().equalityFieldIds(numbers).equalityDeleteRowSchema(schema).build()
        spec, partition = self._scope(scope)
        writer = factory.newEqualityDeleteWriter(self._output_of(spec, partition), spec, partition)
        for row in rows:
            writer.write(self._record(schema, row))
        writer.close()
        self._files[name] = writer.toDeleteFile()

    def _write_vectors(self, name: str, positions: Mapping[str, Sequence[int]]) -> None:
        """Write deletion vectors of data files; the first has the name, others its number too."""
        none = self._gateway.jvm.com.google.common.base.Functions  # a function of Java's
        writer = self._iceberg.deletes.BaseDVFileWriter(
            self._outputs(self._iceberg.FileFormat.PUFFIN), none.constant(None)
        )
        for data, rows in positions.items():
            spec, partition = self._scope(data)
            for row in rows:
                writer.delete(self._files[data].location(), row, spec, partition)
        writer.close()
        for number, file in enumerate(writer.result().deleteFiles()):
            self._files[f"{name}{number or ''}"] = file

    def _commit(
        self, data: Sequence[str], deletes: Sequence[str], gone: Sequence[str] = ()
    ) -> None:
        """Commit data files, and files with deletes, of which some replace others."""
        if not deletes:
            change = self._table.newAppend()
            for name in data:
                change.appendFile(self._files[name])
            change.commit()
            return
        change = self._table.newRowDelta()
        for name in data:
            change.addRows(self._files[name])
        for name in deletes:
            change.addDeletes(self._files[name])
        for name in gone:
            change.removeDeletes(self._files[name])
        if self._table.currentSnapshot() is not None:
            change.validateFromSnapshot(self._table.currentSnapshot().snapshotId())
        change.commit()

    def _drop(self, data: Sequence[str], deletes: Sequence[str]) -> None:
        """Remove data files, and files with deletes."""
        if data:
            change = self._table.newDelete()
            for name in data:
                change.deleteFile(self._files[name])
            change.commit()
        if deletes:
            delta = self._table.newRowDelta()
            for name in deletes:
                delta.removeDeletes(self._files[name])
            delta.commit()

    def _rewrite(self, old: Sequence[str], new: Sequence[str]) -> None:
        """Replace data files by others with the same rows, of the age of the current snapshot."""
        number = self._table.currentSnapshot().sequenceNumber()
        change = self._table.newRewrite().dataSequenceNumber(number)
        for name in old:
            change.deleteFile(self._files[name])
        for name in new:
            change.addFile(self._files[name])
        change.commit()

    def _columns(self, change: str, *arguments: Any) -> None:
        """Change the columns: `addColumn`, `renameColumn`, `deleteColumn`, `updateColumn`."""
        kinds = self._iceberg.types.Types
        given = [
            kinds.fromPrimitiveString(one[1:]) if str(one).startswith(":") else one
            for one in arguments
        ]
        update = self._table.updateSchema()
        getattr(update, change)(*given)
        update.commit()

    def _partitions(self, change: str, column: str) -> None:
        """Change the partition spec: `addField` or `removeField`."""
        update = self._table.updateSpec()
        getattr(update, change)(column)
        update.commit()

    def _set(self, name: str, text: str) -> None:
        """Set a property, such as `format-version`."""
        update = self._table.updateProperties()
        update.set(name, text)
        update.commit()

    def _builder(self) -> Any:
        parquet = self._iceberg.FileFormat.PARQUET
        builder = getattr(self._iceberg.data, "GenericFileWriterFactory$Builder")(self._table)
        return builder.dataFileFormat(parquet).deleteFileFormat(parquet)

    def _factory(self) -> Any:
        return self._builder().build()

    def _record(self, schema: Any, row: Row) -> Any:
        return self._iceberg.SingleValueParser.fromJson(schema.asStruct(), json.dumps(row))

    def _key(self, spec: Any, record: Any) -> Any:
        if spec.isUnpartitioned():
            return None
        key = self._iceberg.PartitionKey(spec, self._table.schema())
        key.partition(record)
        return key

    def _scope(self, data: str | None) -> tuple[Any, Any]:
        """The spec and the partition of a data file; of none those of no partition."""
        if data is None:
            return self._iceberg.PartitionSpec.unpartitioned(), None
        file = self._files[data]
        spec = self._table.specs().get(file.specId())
        return spec, None if spec.isUnpartitioned() else file.partition()

    def _output(self, spec: Any, record: Any) -> Any:
        return self._output_of(spec, self._key(spec, record))

    def _output_of(self, spec: Any, partition: Any) -> Any:
        outputs = self._outputs(self._iceberg.FileFormat.PARQUET)
        return outputs.newOutputFile() if partition is None else outputs.newOutputFile(
            spec, partition
        )  # fmt: skip

    def _outputs(self, file_format: Any) -> Any:
        self._written += 1
        factory = self._iceberg.io.OutputFileFactory
        return factory.builderFor(self._table, self._written, 0).format(file_format).build()


def make_iceberg(session: Any, story: Mapping[str, Any]) -> None:
    """Make the table that a story tells of."""
    IcebergMaker(session, story).tell(story["steps"])
