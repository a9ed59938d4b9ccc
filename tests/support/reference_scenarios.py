"""Tables that show one feature each, as statements of the reference.

`T` stands for the table. `steps` are the reference's, one version each unless it skips one; then
deltalog appends the rows of `append`; `after` is what the reference does next. Statements are
kept few: each takes the reference about a second.
"""

# ruff: noqa: S608  # SQL is what this file is about

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One feature's table.

    Args:
        name: of the test.
        create: the table's declaration.
        steps: what the reference does before deltalog comes.
        append: a query whose rows deltalog appends.
        after: what the reference does after that.
        long: whether all comparisons have to be asked for, besides those of `_LONG`.
    """

    name: str
    create: str
    steps: tuple[str, ...]
    append: str
    after: tuple[str, ...] = ()
    long: bool = False

    def __str__(self) -> str:
        """The id of a test."""
        return self.name


def _properties(**properties: str) -> str:
    listed = ", ".join(f"'delta.{name}' = '{value}'" for name, value in properties.items())
    return f" TBLPROPERTIES ({listed})"


_NO_VECTORS: Final = {"enableDeletionVectors": "false"}
_VECTORS: Final = {"enableDeletionVectors": "true"}

_ALL_TYPES: Final = """
    id INT, bo BOOLEAN, b TINYINT, sh SMALLINT, l BIGINT, f FLOAT, d DOUBLE, s STRING,
    bi BINARY, da DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, de DECIMAL(5,2), dm DECIMAL(18,4),
    dl DECIMAL(38,10), st STRUCT<x: INT, y: ARRAY<STRING>>, m MAP<STRING, STRUCT<z: DATE>>
"""
_ALL_VALUES: Final = """
    SELECT {id} AS id, true AS bo, -128Y AS b, 32767S AS sh, -9223372036854775808L AS l,
    CAST('NaN' AS FLOAT) AS f, CAST('-Infinity' AS DOUBLE) AS d, 'ü\\'"x' AS s, X'00ff' AS bi,
    DATE'1582-10-15' AS da, TIMESTAMP'2021-12-31 23:59:59.999999' AS ts,
    TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' AS tn, -999.99BD AS de,
    CAST(12345678901234.5678BD AS DECIMAL(18,4)) AS dm,
    CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10)) AS dl,
    named_struct('x', 1, 'y', array('a', NULL)) AS st,
    map('k', named_struct('z', DATE'2024-02-29')) AS m
"""

_PARTITION_TYPES: Final = {
    "boolean": ("BOOLEAN", "true", "false"),
    "tinyint": ("TINYINT", "-1Y", "127Y"),
    "bigint": ("BIGINT", "-9223372036854775808L", "12L"),
    "float": ("FLOAT", "CAST('NaN' AS FLOAT)", "CAST(1e10 AS FLOAT)"),
    "double": ("DOUBLE", "CAST(0.1 AS DOUBLE)", "CAST('-Infinity' AS DOUBLE)"),
    "string": ("STRING", "'a/b=c %41:ü'", "' '"),
    "binary": ("BINARY", "X'616263'", "X'64'"),
    "date": ("DATE", "DATE'1900-01-01'", "DATE'2024-02-29'"),
    "timestamp": (
        "TIMESTAMP",
        "TIMESTAMP'2024-01-01 10:11:12.123456'",
        "TIMESTAMP'1960-01-01 00:00:00'",
    ),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ",
        "TIMESTAMP_NTZ'2024-01-01 10:11:12.5'",
        "TIMESTAMP_NTZ'2024-01-01 00:00:00'",
    ),
    "decimal": (
        "DECIMAL(10,3)",
        "CAST(-1.5 AS DECIMAL(10,3))",
        "CAST(1234567.125 AS DECIMAL(10,3))",
    ),
}


def _partitioned(name: str, kind: str, one: str, two: str) -> Scenario:
    first = f"(1, {one}), (2, NULL)"
    return Scenario(
        name=f"partitioned-by-{name}",
        create=f"CREATE TABLE T (id INT, p {kind}) USING delta PARTITIONED BY (p)",
        steps=("INSERT INTO T VALUES " + first,),
        append="SELECT * FROM VALUES " + f"(10, {one}), (11, {two}), (12, NULL) t(id, p)",
        after=(f"UPDATE T SET id = 20 WHERE p <=> {one}",),
        long=name not in {"string", "timestamp", "decimal"},
    )


ALL_SCENARIOS: Final = (
    Scenario(
        name="plain",
        create="CREATE TABLE T (id INT NOT NULL, s STRING) USING delta",
        steps=("INSERT INTO T VALUES (1, 'a'), (2, NULL)",),
        append="SELECT 3 AS id, 'c' AS s UNION ALL SELECT 4, ''",
        after=("INSERT INTO T VALUES (5, 'e')", "DELETE FROM T WHERE id IN (1, 3)"),
    ),
    Scenario(
        name="types",
        create=f"CREATE TABLE T ({_ALL_TYPES}) USING delta",
        steps=("INSERT INTO T" + _ALL_VALUES.format(id=1), "INSERT INTO T (id) VALUES (2)"),
        append=_ALL_VALUES.format(id=3),
        after=("INSERT INTO T" + _ALL_VALUES.format(id=5),),
    ),
    *(_partitioned(name, *rest) for name, rest in _PARTITION_TYPES.items()),
    Scenario(
        name="column-mapping-name",
        create="CREATE TABLE T (`a b` INT, s STRUCT<`x.y`: INT, z: ARRAY<STRUCT<q: INT>>>,"
        " p STRING) USING delta PARTITIONED BY (p)" + _properties(**{"columnMapping.mode": "name"}),
        steps=(
            "INSERT INTO T SELECT 1, named_struct('x.y', 1, 'z', array(named_struct('q', 2))), 'p'",
            "ALTER TABLE T RENAME COLUMN `a b` TO `c,d`",
            "ALTER TABLE T RENAME COLUMN p TO `p=q`",
            "ALTER TABLE T ADD COLUMN gone INT",
            "ALTER TABLE T DROP COLUMN gone",
            "ALTER TABLE T ADD COLUMN gone STRING",
        ),
        append="SELECT 2 AS `c,d`, named_struct('x.y', 5, 'z', array(named_struct('q', 6))) AS s,"
        " 'r' AS `p=q`, 'new' AS gone",
        after=("UPDATE T SET s = NULL WHERE `c,d` = 2", "ALTER TABLE T RENAME COLUMN s.z TO w"),
    ),
    Scenario(
        name="column-mapping-id",
        create="CREATE TABLE T (a INT, b STRUCT<c: INT>) USING delta"
        + _properties(**{"columnMapping.mode": "id"}),
        steps=(
            "INSERT INTO T VALUES (1, named_struct('c', 2))",
            "ALTER TABLE T RENAME COLUMN a TO x",
        ),
        append="SELECT 5 AS x, named_struct('c', 6) AS b",
        after=("INSERT INTO T VALUES (7, NULL)",),
    ),
    Scenario(
        name="column-mapping-enabled-later",
        create="CREATE TABLE T (a INT, b INT) USING delta" + _properties(**_NO_VECTORS),
        steps=(
            "INSERT INTO T VALUES (1, 2)",
            "ALTER TABLE T SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
            "ALTER TABLE T DROP COLUMN b",
        ),
        append="SELECT 5 AS a",
        after=("ALTER TABLE T ADD COLUMN b STRING", "INSERT INTO T VALUES (7, 'b')"),
    ),
    Scenario(
        name="deletion-vectors",
        create="CREATE TABLE T (id INT, p INT) USING delta PARTITIONED BY (p)"
        + _properties(**_VECTORS),
        steps=(
            "INSERT INTO T SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(0, 20, 1, 1)",
            "DELETE FROM T WHERE id IN (3, 4, 7)",
        ),
        append="SELECT 100 AS id, 0 AS p UNION ALL SELECT 101, 5",
        after=("DELETE FROM T WHERE id IN (8, 100)", "UPDATE T SET id = id + 1000 WHERE id = 101"),
    ),
    Scenario(
        name="identity-always",
        create="CREATE TABLE T (id BIGINT GENERATED ALWAYS AS IDENTITY"
        " (START WITH 10 INCREMENT BY 5), v STRING) USING delta",
        steps=("INSERT INTO T (v) VALUES ('a'), ('b')",),
        append="SELECT 'c' AS v UNION ALL SELECT 'd'",
        after=("INSERT INTO T (v) VALUES ('e')",),
    ),
    Scenario(
        name="identity-negative-by-default",
        create="CREATE TABLE T (id BIGINT GENERATED BY DEFAULT AS IDENTITY"
        " (START WITH -1 INCREMENT BY -2), v STRING) USING delta",
        steps=("INSERT INTO T (v) VALUES ('a'), ('b')", "INSERT INTO T VALUES (1000, 'explicit')"),
        append="SELECT 'c' AS v UNION ALL SELECT 'd'",
        after=("INSERT INTO T (v) VALUES ('e')",),
    ),
    Scenario(
        name="generated-columns",
        create="CREATE TABLE T (ts TIMESTAMP, id INT, y INT GENERATED ALWAYS AS (YEAR(ts)),"
        " d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), t STRING GENERATED ALWAYS AS"
        " (substring(CAST(id AS STRING), 1, 1))) USING delta PARTITIONED BY (d)",
        steps=("INSERT INTO T (ts, id) VALUES (TIMESTAMP'2021-12-31 23:59:59', 12), (NULL, 3)",),
        append="SELECT TIMESTAMP'1583-01-01 05:06:07' AS ts, 45 AS id UNION ALL SELECT NULL, NULL",
        after=("INSERT INTO T (ts, id) VALUES (TIMESTAMP'2022-12-31 23:59:59', 9)",),
    ),
    Scenario(
        name="defaults",
        create="CREATE TABLE T (id INT, a INT DEFAULT 40 + 2, s STRING DEFAULT 'x',"
        " d DATE DEFAULT DATE'2020-01-01') USING delta"
        + _properties(**{"feature.allowColumnDefaults": "supported"}),
        steps=("INSERT INTO T (id) VALUES (1)",),
        append="SELECT 2 AS id, 'given' AS s",
        after=("INSERT INTO T (id, s) VALUES (3, DEFAULT)",),
    ),
    Scenario(
        name="constraints",
        create="CREATE TABLE T (id INT NOT NULL, v INT, s STRUCT<x: INT NOT NULL>) USING delta",
        steps=(
            "ALTER TABLE T ADD CONSTRAINT positive CHECK (v > 0 OR id = 0)",
            "INSERT INTO T VALUES (0, -1, named_struct('x', 1)), (1, 1, named_struct('x', 2))",
        ),
        append="SELECT 2 AS id, 5 AS v, named_struct('x', 3) AS s",
        after=("INSERT INTO T VALUES (3, 3, named_struct('x', 3))",),
    ),
    Scenario(
        name="row-tracking",
        create="CREATE TABLE T (id INT, v STRING) USING delta"
        + _properties(enableRowTracking="true"),
        steps=(
            "INSERT INTO T SELECT CAST(id AS INT), 'a' FROM range(0, 6, 1, 2)",
            "UPDATE T SET v = 'b' WHERE id = 1",
        ),
        append="SELECT 10 AS id, 'c' AS v UNION ALL SELECT 11, 'c'",
        after=("INSERT INTO T VALUES (20, 'd')", "UPDATE T SET v = 'e' WHERE id IN (0, 10)"),
    ),
    Scenario(
        name="row-tracking-enabled-later",
        create="CREATE TABLE T (id INT, v STRING) USING delta" + _properties(**_NO_VECTORS),
        steps=(
            "INSERT INTO T VALUES (1, 'a'), (2, 'a')",
            "ALTER TABLE T SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",
        ),
        append="SELECT 10 AS id, 'c' AS v",
        after=("INSERT INTO T VALUES (20, 'd')", "UPDATE T SET v = 'e' WHERE id IN (1, 10)"),
    ),
    Scenario(
        name="in-commit-timestamps",
        create="CREATE TABLE T (id INT) USING delta" + _properties(enableInCommitTimestamps="true"),
        steps=("INSERT INTO T VALUES (1)",),
        append="SELECT 2 AS id",
        after=("INSERT INTO T VALUES (3)",),
    ),
    Scenario(
        name="in-commit-timestamps-enabled-later",
        create="CREATE TABLE T (id INT) USING delta",
        steps=(
            "INSERT INTO T VALUES (1)",
            "ALTER TABLE T SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        ),
        append="SELECT 2 AS id",
        after=("INSERT INTO T VALUES (3)",),
    ),
    Scenario(
        name="clustering",
        create="CREATE TABLE T (a INT, b STRING) USING delta CLUSTER BY (b)",
        steps=("INSERT INTO T VALUES (1, 'x'), (2, 'y')", "ALTER TABLE T CLUSTER BY (a, b)"),
        append="SELECT 3 AS a, 'z' AS b",
        after=("OPTIMIZE T", "INSERT INTO T VALUES (4, 'q')"),
    ),
    Scenario(
        name="type-widening",
        create="CREATE TABLE T (k TINYINT, d DECIMAL(5,2), f FLOAT, t DATE, s STRUCT<x: SMALLINT>)"
        " USING delta"
        + _properties(**{"feature.timestampNtz": "supported"}, enableTypeWidening="true"),
        steps=(
            "INSERT INTO T VALUES (1, 999.99, 1.5, DATE'2024-01-01', named_struct('x', 1S))",
            "ALTER TABLE T ALTER COLUMN k TYPE INT",
            "ALTER TABLE T ALTER COLUMN d TYPE DECIMAL(20,5)",
            "ALTER TABLE T ALTER COLUMN f TYPE DOUBLE",
            "ALTER TABLE T ALTER COLUMN t TYPE TIMESTAMP_NTZ",
            "ALTER TABLE T ALTER COLUMN s.x TYPE BIGINT",
        ),
        append="SELECT 100000 AS k, CAST(123456789012345.67891 AS DECIMAL(20,5)) AS d, 1e300 AS f,"
        " TIMESTAMP_NTZ'2024-01-01 10:00:00' AS t, named_struct('x', 99999999999L) AS s",
        after=(
            "ALTER TABLE T ALTER COLUMN k TYPE BIGINT",
            "INSERT INTO T (k) VALUES (99999999999)",
        ),
    ),
    Scenario(
        name="v2-checkpoints",
        create="CREATE TABLE T (id INT, p STRING) USING delta PARTITIONED BY (p)"
        + _properties(checkpointPolicy="v2", checkpointInterval="2"),
        steps=("INSERT INTO T VALUES (1, 'a')", "INSERT INTO T VALUES (2, 'b')"),
        append="SELECT 3 AS id, 'c' AS p",
        after=("INSERT INTO T VALUES (4, 'a')", "INSERT INTO T VALUES (5, 'a')"),
    ),
    Scenario(
        name="variant",
        create="CREATE TABLE T (id INT, v VARIANT) USING delta",
        steps=("INSERT INTO T SELECT 1, parse_json('{\"a\": [1, 2.5, null]}')",),
        append='SELECT 2 AS id, parse_json(\'{"b": "ü"}\') AS v UNION ALL SELECT 3, NULL'
        " UNION ALL SELECT 4, parse_json('null')",
        after=("INSERT INTO T SELECT 5, parse_json('[]')",),
    ),
    Scenario(
        name="iceberg-compat-v1",
        create="CREATE TABLE T (id INT, ts TIMESTAMP, d DECIMAL(10,2)) USING delta"
        + _properties(
            **_NO_VECTORS, **{"columnMapping.mode": "name"}, enableIcebergCompatV1="true"
        ),
        steps=("INSERT INTO T VALUES (1, TIMESTAMP'2024-01-01 00:00:00', 1.5), (2, NULL, NULL)",),
        append="SELECT 3 AS id, TIMESTAMP'2024-01-02 00:00:00' AS ts,"
        " CAST(1 AS DECIMAL(10,2)) AS d",
        after=("UPDATE T SET d = 2.5 WHERE id = 2",),
    ),
    Scenario(
        name="iceberg-compat-v2",
        create="CREATE TABLE T (id INT, m MAP<STRING, STRUCT<x: ARRAY<INT>>>, p STRING) USING delta"
        " PARTITIONED BY (p)"
        + _properties(
            **_NO_VECTORS, **{"columnMapping.mode": "name"}, enableIcebergCompatV2="true"
        ),
        steps=("INSERT INTO T SELECT 1, map('k', named_struct('x', array(1, NULL))), 'p'",),
        append="SELECT 3 AS id, map('q', named_struct('x', array(7))) AS m, 'r' AS p",
        after=("INSERT INTO T SELECT 4, NULL, 'p'",),
    ),
    Scenario(
        name="iceberg-compat-v3",
        create="CREATE TABLE T (id INT, m MAP<STRING, STRUCT<x: ARRAY<INT>>>, p STRING) USING delta"
        " PARTITIONED BY (p)"
        + _properties(
            **_VECTORS,
            **{"columnMapping.mode": "name"},
            enableRowTracking="true",
            enableIcebergCompatV3="true",
        ),
        steps=(
            (
                "INSERT INTO T SELECT CAST(id AS INT), map('k', named_struct('x', array(1))), 'p'"
                " FROM range(0, 8, 1, 1)"
            ),
            "DELETE FROM T WHERE id = 3",
        ),
        append="SELECT 30 AS id, map('q', named_struct('x', array(7))) AS m, 'r' AS p",
        after=("UPDATE T SET m = NULL WHERE id IN (4, 30)",),
    ),
    Scenario(
        name="char-varchar",
        create="CREATE TABLE T (id INT, v VARCHAR(6), p CHAR(3)) USING delta",
        steps=("INSERT INTO T VALUES (1, 'vé', 'abc'), (2, 'sixsix', NULL)",),
        append="SELECT 3 AS id, 'abcdef' AS v, 'xyz' AS p",
        after=("INSERT INTO T VALUES (4, '', 'abc')",),
    ),
    Scenario(
        name="append-only",
        create="CREATE TABLE T (id INT) USING delta" + _properties(appendOnly="true"),
        steps=("INSERT INTO T VALUES (1)",),
        append="SELECT 2 AS id",
        after=("INSERT INTO T VALUES (3)",),
    ),
    Scenario(
        name="change-data-feed",
        create="CREATE TABLE T (id INT, v STRING, p INT) USING delta PARTITIONED BY (p)"
        + _properties(**_NO_VECTORS, enableChangeDataFeed="true"),
        steps=(
            "INSERT INTO T VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 1)",
            "UPDATE T SET v = 'z' WHERE id = 1",
            "DELETE FROM T WHERE id = 3",
        ),
        append="SELECT 10 AS id, 'n' AS v, 3 AS p",
        after=("UPDATE T SET p = 4 WHERE id IN (2, 10)",),
    ),
    Scenario(
        name="change-data-feed-with-vectors",
        create="CREATE TABLE T (id INT, v STRING) USING delta"
        + _properties(**_VECTORS, **{"columnMapping.mode": "name"}, enableChangeDataFeed="true"),
        steps=(
            "INSERT INTO T SELECT CAST(id AS INT), 'a' FROM range(0, 8, 1, 1)",
            "DELETE FROM T WHERE id = 3",
        ),
        append="SELECT 10 AS id, 'n' AS v",
        after=(
            (
                "MERGE INTO T USING (SELECT explode(array(1, 10)) AS k) u ON id = k"
                " WHEN MATCHED AND k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm'"
            ),
        ),
    ),
    Scenario(
        name="materialized-partition-columns",
        create="CREATE TABLE T (id INT, p INT, q STRING) USING delta PARTITIONED BY (p, q)"
        + _properties(enableMaterializePartitionColumnsFeature="true"),
        steps=("INSERT INTO T VALUES (1, 1, 'a'), (2, NULL, 'b')",),
        append="SELECT 3 AS id, 3 AS p, NULL AS q",
        after=("INSERT INTO T VALUES (4, 1, 'z')",),
    ),
    Scenario(
        name="random-file-prefixes",
        create="CREATE TABLE T (id INT, p INT) USING delta PARTITIONED BY (p)"
        + _properties(randomizeFilePrefixes="true", randomPrefixLength="4"),
        steps=("INSERT INTO T VALUES (1, 1)",),
        append="SELECT 3 AS id, 3 AS p",
        after=("INSERT INTO T VALUES (4, 1)",),
    ),
    Scenario(
        name="statistics-as-struct",
        create="CREATE TABLE T (id INT, s STRUCT<a: STRING, b: DOUBLE>, p DATE) USING delta"
        " PARTITIONED BY (p)"
        + _properties(
            **{"checkpoint.writeStatsAsStruct": "true", "checkpoint.writeStatsAsJson": "false"},
            checkpointInterval="2",
        ),
        steps=("INSERT INTO T VALUES (1, named_struct('a', 'x', 'b', 1.5), DATE'2024-01-01')",),
        append="SELECT 3 AS id, named_struct('a', 'y', 'b', CAST('NaN' AS DOUBLE)) AS s,"
        " DATE'2024-01-02' AS p",
        after=("INSERT INTO T VALUES (4, NULL, NULL)", "INSERT INTO T VALUES (5, NULL, NULL)"),
    ),
)

FULL: Final = os.environ.get("DELTALOG_REFERENCE_FULL", "") not in {"", "0"}
"""Whether all comparisons are made (`make test-long`), or some of each kind."""
_LONG: Final = frozenset(
    {
        *("column-mapping-id", "column-mapping-enabled-later", "identity-negative-by-default"),
        *("defaults", "row-tracking-enabled-later", "in-commit-timestamps-enabled-later"),
        *("iceberg-compat-v1", "iceberg-compat-v2", "char-varchar", "append-only"),
        "change-data-feed",
        *("materialized-partition-columns", "random-file-prefixes"),
    }
)
SCENARIOS: Final = tuple(
    each for each in ALL_SCENARIOS if FULL or not (each.long or each.name in _LONG)
)
