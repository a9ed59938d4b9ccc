-- Statements as Delta's and Spark's documentation spell them, each with what it needs.
-- `T`, `S` and `U` are tables without names, `{T}` is the location of one. A statement after `!` is to be
-- refused by both. `-- begins:` names the sections with whose statements a case begins.

-- section: people
CREATE TABLE T (id INT, firstName STRING, middleName STRING, lastName STRING, gender STRING,
  birthDate TIMESTAMP, ssn STRING, salary INT) USING DELTA
  TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO T VALUES
  (1, 'Ann', NULL, 'Lee', 'F', TIMESTAMP'1990-05-06 00:00:00', '111', 100),
  (2, 'Bob', 'X', 'Ray', 'M', TIMESTAMP'1940-01-02 03:04:05', '222', 200),
  (9999998, 'Cid', NULL, 'O''Neil', 'M', NULL, NULL, NULL), (NULL, 'Zoë', '', 'Ω', NULL, NULL, '', 5);

-- section: events
CREATE TABLE T (date DATE, eventId STRING, eventType STRING, data STRING) USING DELTA
  PARTITIONED BY (date) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true');
INSERT INTO T VALUES (DATE'2017-01-01', '1', 'clck', 'a'), (DATE'2016-12-31', '2', 'click', NULL),
  (DATE'2017-01-01', '3', NULL, 'c'), (NULL, '4', 'view', 'd');

-- section: source
CREATE TABLE S (date DATE, eventId STRING, eventType STRING, data STRING) USING DELTA;
INSERT INTO S VALUES (DATE'2017-01-01', '1', 'click', 'new'), (DATE'2017-02-02', '9', 'view', NULL);

-- section: mapped
CREATE TABLE T (a INT, b STRING, s STRUCT<x: INT, y: STRING>) USING DELTA
  TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true');
INSERT INTO T VALUES (1, 'one', named_struct('x', 1, 'y', 'z')), (2, NULL, NULL);

-- section: small
CREATE TABLE T (a INT, b STRING) USING DELTA;
INSERT INTO T VALUES (1, 'one'), (2, NULL), (NULL, 'x');

-- case: create with columns
CREATE TABLE IF NOT EXISTS T (id INT, firstName STRING, birthDate TIMESTAMP, salary DECIMAL(10, 2))
  USING DELTA;
CREATE TABLE IF NOT EXISTS T (id INT) USING DELTA;

-- case: every type
CREATE TABLE T (a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE,
  h DECIMAL(38, 18), i STRING, j BINARY, k DATE, l TIMESTAMP, m TIMESTAMP_NTZ,
  n ARRAY<INT>, o MAP<STRING, BIGINT>, p STRUCT<x: INT COMMENT 'in', y: ARRAY<STRUCT<z: STRING>>>,
  q VARCHAR(5), r CHAR(3)) USING DELTA;
INSERT INTO T VALUES (true, 1Y, 2S, 3, 4L, 1.5F, 2.5D, 1.000000000000000001, 'ä', X'00FF',
  DATE'2020-02-29', TIMESTAMP'2020-02-29 12:34:56.789', TIMESTAMP_NTZ'1969-12-31 23:59:59.999999',
  array(1, NULL), map('k', 5), named_struct('x', 1, 'y', array(named_struct('z', 'q'))), 'vc', 'cha');
INSERT INTO T (d) VALUES (NULL);
! INSERT INTO T (q) VALUES ('too long');

-- case: not null inside of a struct
CREATE TABLE T (s STRUCT<x: INT NOT NULL, y: STRING>) USING DELTA;
INSERT INTO T VALUES (named_struct('x', 1, 'y', NULL));
! INSERT INTO T VALUES (named_struct('x', CAST(NULL AS INT), 'y', NULL));

-- case: partitioned
-- begins: events
SELECT * FROM T WHERE date = '2017-01-01';
SHOW PARTITIONS T;

-- case: partitioned with types
CREATE TABLE T (a INT, p DATE, q STRING) USING DELTA PARTITIONED BY (p, q);
INSERT INTO T VALUES (1, DATE'2020-01-01', 'x y'), (2, NULL, 'a/b'), (3, DATE'2021-01-01', NULL);
SELECT a, q FROM T WHERE p < '2021-01-01' OR q IS NULL;

-- case: clustered
CREATE TABLE T (col0 INT, col1 STRING) USING DELTA CLUSTER BY (col0);
INSERT INTO T VALUES (1, 'a');
OPTIMIZE T;
ALTER TABLE T CLUSTER BY (col1, col0);
OPTIMIZE T FULL;
ALTER TABLE T CLUSTER BY NONE;

-- case: clustered as select
-- begins: small
CREATE TABLE S USING DELTA CLUSTER BY (a) AS SELECT * FROM T;

-- case: location
CREATE TABLE T (a INT) USING DELTA TBLPROPERTIES ('delta.appendOnly' = 'true', 'mine' = 'x');
INSERT INTO T VALUES (1);
! DELETE FROM T;

-- case: as select
-- begins: small
CREATE TABLE S USING DELTA PARTITIONED BY (b) COMMENT 'c' TBLPROPERTIES ('k' = 'v')
  AS SELECT a + 1 AS n, b, CAST(a AS DECIMAL(5, 1)) AS d FROM T WHERE a IS NOT NULL;
CREATE OR REPLACE TABLE S USING DELTA AS SELECT b FROM T;

-- case: replace from itself
-- begins: small
CREATE OR REPLACE TABLE T USING DELTA AS SELECT a * 2 AS a2 FROM T;

-- case: replace table
-- begins: small
REPLACE TABLE T USING DELTA PARTITIONED BY (z) AS SELECT 1 AS a, 'x' AS z;

-- case: replace table as
-- begins: small
REPLACE TABLE T USING DELTA AS SELECT 5 AS five;

-- case: create twice
-- begins: small
! CREATE TABLE T (a INT) USING DELTA;

-- case: replace what is not there
! REPLACE TABLE T (a INT) USING DELTA;
CREATE TABLE S (a INT) USING DELTA;

-- case: generated
CREATE TABLE T (id INT, birthDate TIMESTAMP, dateOfBirth DATE GENERATED ALWAYS AS (CAST(birthDate AS DATE)),
  n INT GENERATED ALWAYS AS (id * 2)) USING DELTA PARTITIONED BY (dateOfBirth);
INSERT INTO T (id, birthDate) VALUES (1, TIMESTAMP'2020-01-01 10:00:00'), (NULL, NULL);
INSERT INTO T VALUES (2, TIMESTAMP'2021-01-01 00:00:00', DATE'2021-01-01', 4);
! INSERT INTO T VALUES (2, TIMESTAMP'2021-01-01 00:00:00', DATE'2021-01-01', 5);
UPDATE T SET id = 7 WHERE id = 1;
SELECT * FROM T;

-- case: generated may not
! CREATE TABLE T (a INT, b INT GENERATED ALWAYS AS (c + 1)) USING DELTA;
! CREATE TABLE T (a INT, b INT GENERATED ALWAYS AS (max(a))) USING DELTA;
CREATE TABLE T (a INT) USING DELTA;

-- case: identity
CREATE TABLE T (id1 BIGINT GENERATED ALWAYS AS IDENTITY, id2 BIGINT GENERATED ALWAYS AS IDENTITY (START WITH -1 INCREMENT BY 1),
  id3 BIGINT GENERATED BY DEFAULT AS IDENTITY, id4 BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -1 INCREMENT BY -5), a INT) USING DELTA;
INSERT INTO T (a) VALUES (5);
INSERT INTO T (a, id3) VALUES (6, 100);
! INSERT INTO T (a, id1) VALUES (6, 100);
ALTER TABLE T ALTER COLUMN id3 SYNC IDENTITY;
SELECT * FROM T;

-- case: identity may not
! CREATE TABLE T (id INT GENERATED ALWAYS AS IDENTITY) USING DELTA;
! CREATE TABLE T (id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0)) USING DELTA;
CREATE TABLE T (a INT) USING DELTA;

-- case: defaults
CREATE TABLE T (a INT, b STRING DEFAULT 'none', c INT DEFAULT 40 + 2) USING DELTA
  TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported');
INSERT INTO T (a) VALUES (1);
INSERT INTO T VALUES (2, DEFAULT, DEFAULT), (3, 'x', 5);
INSERT INTO T (b, a) VALUES (DEFAULT, 4);
UPDATE T SET b = DEFAULT WHERE a = 3;
ALTER TABLE T ALTER COLUMN a SET DEFAULT -1;
ALTER TABLE T ALTER COLUMN c DROP DEFAULT;
INSERT INTO T (b) VALUES ('after');
MERGE INTO T t USING (SELECT 9 AS k) s ON t.a = s.k WHEN NOT MATCHED THEN INSERT (a) VALUES (s.k);
SELECT * FROM T;

-- case: time travel
-- begins: small
DELETE FROM T WHERE a = 1;
SELECT * FROM T VERSION AS OF 1;
SELECT * FROM T FOR VERSION AS OF 1 WHERE a > 1;
SELECT count(*) FROM T VERSION AS OF 0;
SELECT n.a, o.b FROM T n RIGHT JOIN T VERSION AS OF 1 o ON n.a = o.a;
! SELECT * FROM T VERSION AS OF 17;
! SELECT * FROM T TIMESTAMP AS OF '1999-01-01';

-- case: insert into what was
-- begins: small
DELETE FROM T;
INSERT INTO T SELECT * FROM T VERSION AS OF 1 WHERE a = 1;

-- case: repair by time travel
-- begins: small
UPDATE T SET b = 'oops';
MERGE INTO T target USING (SELECT * FROM T VERSION AS OF 1) source ON source.a = target.a WHEN MATCHED THEN UPDATE SET *;

-- case: append
-- begins: events, source
INSERT INTO T SELECT * FROM S;
INSERT INTO T TABLE S;

-- case: overwrite
-- begins: events, source
INSERT OVERWRITE TABLE T SELECT * FROM S;

-- case: overwrite one partition
-- begins: events
INSERT OVERWRITE TABLE T PARTITION (date = '2017-01-01') VALUES ('7', 'x', 'y');

-- case: insert into a partition
-- begins: events
INSERT INTO T PARTITION (date = '2018-01-01') (eventId, data) VALUES ('7', 'x');
INSERT INTO T PARTITION (date) SELECT DATE'2019-01-01', '8', 'e', 'd';
! INSERT INTO T PARTITION (date) SELECT '8', 'e', 'd', DATE'2019-01-01';

-- case: replace where
-- begins: events, source
INSERT INTO T REPLACE WHERE date >= '2017-01-01' AND date <= '2017-01-31'
  SELECT * FROM S WHERE date < '2017-02-01';
! INSERT INTO T REPLACE WHERE date = '2017-01-01' SELECT * FROM S;

-- case: replace where on any column
-- begins: small
INSERT INTO T REPLACE WHERE a > 1 SELECT 5 AS a, 'five' AS b;

-- case: by name
-- begins: small
INSERT INTO T BY NAME SELECT 'by name' AS b, 7 AS a;
INSERT INTO T BY NAME SELECT 8 AS a;
! INSERT INTO T BY NAME SELECT 8 AS nowhere;
! INSERT INTO T SELECT 1;
! INSERT INTO T VALUES (1, 'a', 2);

-- case: casts of an insert
-- begins: small
INSERT INTO T VALUES (1L, 5), (2.0, 6);
! INSERT INTO T VALUES (1, 5), (2, true);
! INSERT INTO T VALUES (1, 'x'), ('y', 'z');
! INSERT INTO T VALUES (3000000000L, 'x');
! INSERT INTO T VALUES ('text', 'x');
! INSERT INTO T VALUES (DATE'2020-01-01', 'x');
INSERT INTO T SELECT CAST(2.7 AS INT), CAST(CAST(1.5 AS DOUBLE) AS STRING);
INSERT INTO T SELECT 2.7D, DATE'2020-01-01';

-- case: casts inside of structs
CREATE TABLE T (s STRUCT<x: BIGINT, y: STRING>, l ARRAY<DOUBLE>, m MAP<STRING, INT>) USING DELTA;
INSERT INTO T SELECT named_struct('x', 1, 'y', 'a'), array(1, 2), map('a', 5L);
INSERT INTO T SELECT named_struct('other', 7, 'name', 9), array(1.5), map(1, 2);
INSERT INTO T SELECT NULL, NULL, NULL;
! INSERT INTO T SELECT named_struct('x', 1), array(1), map('a', 1);
! INSERT INTO T SELECT named_struct('x', 'text', 'y', 'a'), array(1), map('a', 1);

-- case: structs by name
CREATE TABLE T (s STRUCT<x: BIGINT, y: STRING>) USING DELTA;
! INSERT INTO T BY NAME SELECT named_struct('y', 'a', 'x', 1) AS s;
INSERT INTO T BY NAME SELECT named_struct('x', 1, 'y', 'a') AS s;

-- case: texts
-- begins: small
INSERT INTO T VALUES (10, 'it\'s'), (11, "double"), (12, 'tab\tnew\nline'), (13, r'raw\n'), (14, '\u00e4\\'), (15, '日本'), (16, 'a' 'b');
SELECT b, length(b) FROM T WHERE a >= 10;

-- case: backticks
CREATE TABLE T (`select` INT, `from` STRING, `a``b` INT) USING DELTA TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
INSERT INTO T (`select`, `from`) VALUES (1, 'x');
UPDATE T SET `a``b` = `select` + 1 WHERE `from` = 'x';
SELECT `select`, `a``b` AS `x y` FROM T;

-- case: strange names
CREATE TABLE T (`a b` INT, `c.d` INT, `e,f;g` STRING) USING DELTA TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
INSERT INTO T VALUES (1, 2, 'x');
DELETE FROM T WHERE `c.d` > 5 OR `a b` IS NULL;
SELECT `c.d` + `a b` AS n FROM T;

-- case: delete
-- begins: people
DELETE FROM T WHERE birthDate < '1955-01-01';
DELETE FROM T WHERE id IS NULL OR salary > 1000;

-- case: delete all
-- begins: people
DELETE FROM T;

-- case: delete nothing
-- begins: people
DELETE FROM T WHERE id = 77;

-- case: delete with nulls in a list
-- begins: people
DELETE FROM T WHERE id NOT IN (1, NULL);
DELETE FROM T WHERE NOT (id = 1);

-- case: delete with vectors
CREATE TABLE T (a INT, b STRING) USING DELTA TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true');
INSERT INTO T SELECT CAST(id AS INT), CAST(id AS STRING) FROM range(0, 20, 1, 1);
DELETE FROM T WHERE a % 3 = 0;
UPDATE T SET b = 'u' WHERE a % 3 = 1;
SELECT count(*), sum(a) FROM T;

-- case: update
-- begins: events
UPDATE T SET eventType = 'click' WHERE eventType = 'clck';

-- case: update several
-- begins: people
UPDATE T SET salary = salary + 10, firstName = upper(firstName), middleName = NULL WHERE gender = 'M' OR gender IS NULL;
UPDATE T AS p SET p.salary = CASE WHEN p.salary > 100 THEN p.salary / 3 ELSE 0 END;
! UPDATE T SET salary = 'text';
! UPDATE T SET nothing = 1;
! UPDATE T SET salary = 1, salary = 2;

-- case: update inside of a struct
-- begins: mapped
UPDATE T SET s.x = s.x + 1, a = s.x WHERE s IS NOT NULL;
UPDATE T SET s.y = 'new';

-- case: update a partition
-- begins: events
UPDATE T SET date = DATE'2020-01-01' WHERE date IS NULL OR eventId = '2';

-- case: merge
-- begins: events, source
MERGE INTO T events USING S AS updates ON events.eventId = updates.eventId
  WHEN MATCHED THEN UPDATE SET data = updates.data
  WHEN NOT MATCHED THEN INSERT (date, eventId, data) VALUES (date, eventId, data);

-- case: merge stars
-- begins: events, source
MERGE INTO T AS t USING S AS s ON t.eventId = s.eventId WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;

-- case: merge every clause
-- begins: events, source
MERGE INTO T t USING S s ON t.eventId = s.eventId
  WHEN MATCHED AND s.data IS NULL THEN DELETE
  WHEN MATCHED THEN UPDATE SET t.data = s.data, t.eventType = concat(s.eventType, '!')
  WHEN NOT MATCHED AND s.date > '2017-01-15' THEN INSERT (date, eventId) VALUES (s.date, s.eventId)
  WHEN NOT MATCHED BY SOURCE AND t.date IS NULL THEN UPDATE SET t.data = 'gone'
  WHEN NOT MATCHED BY SOURCE THEN DELETE;

-- case: merge deletes
-- begins: events, source
MERGE INTO T t USING S s ON s.eventId = t.eventId WHEN MATCHED THEN DELETE;

-- case: merge of a query
-- begins: small
MERGE INTO T t USING (SELECT a, max(b) AS b FROM VALUES (1, 'u'), (7, 'v'), (7, 'w') AS v(a, b) GROUP BY a) s
  ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT *;

-- case: merge matches twice
-- begins: small
! MERGE INTO T t USING (SELECT * FROM VALUES (1, 'u'), (1, 'v') AS v(a, b)) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET *;
MERGE INTO T t USING (SELECT * FROM VALUES (1, 'u'), (1, 'v') AS v(a, b)) s ON t.a = s.a WHEN MATCHED THEN DELETE;

-- case: merge null keys
-- begins: small
MERGE INTO T t USING (SELECT * FROM VALUES (CAST(NULL AS INT), 'n') AS v(a, b)) s ON t.a <=> s.a
  WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT *;

-- case: merge evolves
-- begins: small
MERGE WITH SCHEMA EVOLUTION INTO T t USING (SELECT 1 AS a, 'new' AS b, 2.5 AS c) s ON t.a = s.a
  WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DESCRIBE T;

-- case: merge without evolution
-- begins: small
! MERGE INTO T t USING (SELECT 1 AS a, 'new' AS b) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET c = s.b;
MERGE INTO T t USING (SELECT 1 AS a, 'new' AS b, 5 AS c) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET *;

-- case: merge structs
-- begins: mapped
MERGE INTO T t USING (SELECT 1 AS a, named_struct('y', 'q', 'x', 5) AS s) s ON t.a = s.a
  WHEN MATCHED THEN UPDATE SET t.s.x = s.s.x, t.b = s.s.y;

-- case: merge by source wants a condition
-- begins: small
! MERGE INTO T t USING (SELECT 1 AS a) s ON t.a = s.a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *;
MERGE INTO T t USING (SELECT 1 AS a) s ON t.a = s.a WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 'alone';

-- case: slowly changing
CREATE TABLE T (customerId INT, address STRING, current BOOLEAN, effectiveDate DATE, endDate DATE) USING DELTA;
INSERT INTO T VALUES (1, 'old', true, DATE'2020-01-01', NULL), (2, 'same', true, DATE'2020-01-01', NULL);
CREATE TABLE S (customerId INT, address STRING, effectiveDate DATE) USING DELTA;
INSERT INTO S VALUES (1, 'new', DATE'2021-01-01'), (3, 'first', DATE'2021-02-02');
MERGE INTO T customers USING (
  SELECT u.customerId AS mergeKey, u.* FROM S u
  UNION ALL
  SELECT NULL AS mergeKey, u.* FROM S u JOIN T c ON u.customerId = c.customerId
    WHERE c.current = true AND u.address <> c.address) staged
ON customers.customerId = mergeKey
WHEN MATCHED AND customers.current = true AND customers.address <> staged.address THEN
  UPDATE SET current = false, endDate = staged.effectiveDate
WHEN NOT MATCHED THEN INSERT (customerId, address, current, effectiveDate, endDate)
  VALUES (staged.customerId, staged.address, true, staged.effectiveDate, null);

-- case: data deduplication
-- begins: events, source
MERGE INTO T logs USING S newDedupedLogs ON logs.eventId = newDedupedLogs.eventId AND logs.date > current_date() - INTERVAL 7 DAYS
WHEN NOT MATCHED AND newDedupedLogs.date > DATE'2017-01-15' THEN INSERT *;

-- case: truncate
-- begins: events
TRUNCATE TABLE T;

-- case: add columns
-- begins: small
ALTER TABLE T ADD COLUMNS (c INT COMMENT 'third' FIRST, d STRING AFTER a);
ALTER TABLE T ADD COLUMN e STRUCT<x: INT, y: STRING>;
ALTER TABLE T ADD COLUMNS (e.z DOUBLE AFTER x);
INSERT INTO T (a, e) VALUES (5, named_struct('x', 1, 'z', 2.5D, 'y', 'q'));
SELECT * FROM T;
! ALTER TABLE T ADD COLUMNS (a INT);
! ALTER TABLE T ADD COLUMNS (x INT NOT NULL);

-- case: add inside of arrays
CREATE TABLE T (l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<y: INT>>) USING DELTA;
INSERT INTO T VALUES (array(named_struct('x', 1)), map('k', named_struct('y', 2)));
ALTER TABLE T ADD COLUMNS (l.element.z STRING, m.value.w INT);
SELECT * FROM T;

-- case: change comments and order
-- begins: small
ALTER TABLE T ALTER COLUMN a COMMENT 'the key';
ALTER TABLE T ALTER COLUMN b FIRST;
ALTER TABLE T CHANGE COLUMN b b STRING COMMENT 'text' AFTER a;
COMMENT ON TABLE T IS 'a table';
DESCRIBE T;

-- case: comment on nothing
-- begins: small
COMMENT ON TABLE T IS 'a';
COMMENT ON TABLE T IS NULL;

-- case: change null
-- begins: small
! ALTER TABLE T ALTER COLUMN a SET NOT NULL;
CREATE TABLE S (a INT NOT NULL, b STRING) USING DELTA;
ALTER TABLE S ALTER COLUMN a DROP NOT NULL;
INSERT INTO S VALUES (NULL, 'x');
INSERT INTO S VALUES (1, NULL);

-- case: replace columns
CREATE TABLE T (boxCol STRUCT<colB: STRING, colC: STRING, nested: STRING, colA: STRING>) USING DELTA;
INSERT INTO T VALUES (named_struct('colB', 'b', 'colC', 'c', 'nested', 'n', 'colA', 'a'));
ALTER TABLE T REPLACE COLUMNS (boxCol STRUCT<colB: STRING COMMENT 'x', colC: STRING, nested: STRING, colA: STRING>, other INT COMMENT 'new');
SELECT * FROM T;
DESCRIBE T;

-- case: replace columns of a mapped table
-- begins: mapped
! ALTER TABLE T REPLACE COLUMNS (c DOUBLE, a INT);
ALTER TABLE T REPLACE COLUMNS (b STRING, a INT);
SELECT * FROM T;

-- case: replace columns may not drop
-- begins: small
! ALTER TABLE T REPLACE COLUMNS (a INT);
! ALTER TABLE T REPLACE COLUMNS (a STRING, b STRING);
ALTER TABLE T REPLACE COLUMNS (b STRING, a INT);

-- case: wrong types
-- begins: small
! ALTER TABLE T ALTER COLUMN a TYPE STRING;
! ALTER TABLE T DROP COLUMN a;
! ALTER TABLE T RENAME COLUMN a TO c;
! ALTER TABLE T ALTER COLUMN z COMMENT 'x';

-- case: rename and drop
-- begins: mapped
ALTER TABLE T RENAME COLUMN a TO aa;
ALTER TABLE T RENAME COLUMN s.x TO xx;
ALTER TABLE T DROP COLUMN b;
ALTER TABLE T ADD COLUMN b INT;
INSERT INTO T VALUES (3, named_struct('xx', 3, 'y', NULL), 4);
SELECT aa, s.xx, b FROM T;
ALTER TABLE T DROP COLUMNS (s, b);
! ALTER TABLE T DROP COLUMN aa;

-- case: drop if exists
-- begins: mapped
ALTER TABLE T DROP COLUMN IF EXISTS nothing;
ALTER TABLE T DROP COLUMN IF EXISTS b;
! ALTER TABLE T DROP COLUMN nothing;

-- case: turn mapping on
-- begins: small
ALTER TABLE T SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name');
ALTER TABLE T RENAME COLUMN a TO `a b`;
SELECT `a b` FROM T;

-- case: widen
CREATE TABLE T (a SMALLINT, b FLOAT, c DATE, s STRUCT<x: TINYINT>, d DECIMAL(5, 2)) USING DELTA
  TBLPROPERTIES ('delta.enableTypeWidening' = 'true');
INSERT INTO T VALUES (1S, 1.5F, DATE'2020-01-01', named_struct('x', 1Y), 1.25);
ALTER TABLE T ALTER COLUMN a TYPE BIGINT;
ALTER TABLE T ALTER COLUMN b TYPE DOUBLE;
ALTER TABLE T ALTER COLUMN s.x TYPE INT;
ALTER TABLE T CHANGE COLUMN d TYPE DECIMAL(10, 4);
INSERT INTO T VALUES (5000000000, 2.5, DATE'2020-01-01', named_struct('x', 70000), 12345.6789);
SELECT * FROM T;
! ALTER TABLE T ALTER COLUMN a TYPE INT;

-- case: constraints
CREATE TABLE T (id INT NOT NULL, birthDate TIMESTAMP) USING DELTA;
ALTER TABLE T ADD CONSTRAINT dateWithinRange CHECK (birthDate > '1900-01-01');
ALTER TABLE T ADD CONSTRAINT validIds CHECK (id > 0 AND id < 99999999);
INSERT INTO T VALUES (1, '2000-01-01');
! INSERT INTO T VALUES (2, NULL);
! INSERT INTO T VALUES (-1, '2000-01-01');
! INSERT INTO T VALUES (NULL, NULL);
! ALTER TABLE T ADD CONSTRAINT validIds CHECK (id > 1);
! ALTER TABLE T ADD CONSTRAINT one CHECK (id = 2);
! ALTER TABLE T DROP CONSTRAINT nothing;
ALTER TABLE T DROP CONSTRAINT IF EXISTS nothing;
ALTER TABLE T DROP CONSTRAINT dateWithinRange;
INSERT INTO T VALUES (3, '1800-01-01');

-- case: properties
-- begins: small
ALTER TABLE T SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'mine' = 'a', other.key = 5);
! UPDATE T SET a = 1;
ALTER TABLE T UNSET TBLPROPERTIES ('delta.appendOnly', 'mine');
ALTER TABLE T UNSET TBLPROPERTIES IF EXISTS ('nothing');
UPDATE T SET a = 1;
! ALTER TABLE T SET TBLPROPERTIES ('delta.nonsense' = 'x');
! ALTER TABLE T SET TBLPROPERTIES ('delta.appendOnly' = 'maybe');

-- case: properties of a feature
-- begins: small
ALTER TABLE T SET TBLPROPERTIES ('delta.enableDeletionVectors' = true, 'delta.enableRowTracking' = 'true');
DELETE FROM T WHERE a = 1;

-- case: checkpoints
-- begins: small
ALTER TABLE T SET TBLPROPERTIES ('delta.checkpointInterval' = '2', 'delta.checkpointPolicy' = 'v2');
INSERT INTO T VALUES (5, 'x');
INSERT INTO T VALUES (6, 'x');

-- case: drop feature
CREATE TABLE T (a INT) USING DELTA TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
INSERT INTO T VALUES (1), (2);
! ALTER TABLE T DROP FEATURE nonsense;
! ALTER TABLE T DROP FEATURE appendOnlyyy TRUNCATE HISTORY;
ALTER TABLE T SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false');

-- case: change data feed
-- begins: people
UPDATE T SET salary = 0 WHERE id = 1;
DELETE FROM T WHERE id = 2;
SELECT id, salary, _change_type, _commit_version FROM table_changes_by_path('{T}', 1);
SELECT id, _change_type FROM table_changes_by_path('{T}', 2, 2);
! SELECT * FROM table_changes_by_path('{T}', 99);

-- case: optimize
-- begins: events
INSERT INTO T SELECT * FROM T;
OPTIMIZE T;
OPTIMIZE T WHERE date >= '2017-01-01';
OPTIMIZE T WHERE date >= '2017-01-01' ZORDER BY (eventType);
OPTIMIZE T ZORDER BY (eventType, eventId);
! OPTIMIZE T WHERE eventType = 'x';
! OPTIMIZE T ZORDER BY (date);
! OPTIMIZE T FULL;

-- case: reorg
CREATE TABLE T (a INT, p INT) USING DELTA PARTITIONED BY (p) TBLPROPERTIES ('delta.enableDeletionVectors' = 'true');
INSERT INTO T SELECT CAST(id AS INT), CAST(id % 2 AS INT) FROM range(0, 10, 1, 1);
DELETE FROM T WHERE a < 3;
REORG TABLE T WHERE p = 1 APPLY (PURGE);
REORG TABLE T APPLY (PURGE);

-- case: vacuum
-- begins: small
DELETE FROM T;
VACUUM T DRY RUN;
VACUUM T RETAIN 200 HOURS DRY RUN;
VACUUM T FULL RETAIN 168 HOURS;
VACUUM T LITE;

-- case: restore
-- begins: small
DELETE FROM T WHERE a = 1;
RESTORE TABLE T TO VERSION AS OF 1;
RESTORE T TO VERSION AS OF 0;
! RESTORE TABLE T TO VERSION AS OF 50;

-- case: describe
-- begins: events
DESCRIBE T;
DESC TABLE T;
DESCRIBE T eventId;
DESCRIBE TABLE T date;
! DESCRIBE T nothing;
DESCRIBE DETAIL T;
DESCRIBE HISTORY T LIMIT 1;

-- case: describe a column with a comment
CREATE TABLE T (a INT COMMENT 'c', s STRUCT<x: INT>) USING DELTA;
DESCRIBE T a;
DESCRIBE T s;

-- case: show
-- begins: events
SHOW COLUMNS IN T;
SHOW TBLPROPERTIES T;
SHOW TBLPROPERTIES T ('delta.enableChangeDataFeed');
SHOW PARTITIONS T;

-- case: clone
-- begins: small
CREATE TABLE S SHALLOW CLONE T;
DELETE FROM T WHERE a = 1;
CREATE TABLE U SHALLOW CLONE T VERSION AS OF 0;
CREATE OR REPLACE TABLE U SHALLOW CLONE T VERSION AS OF 1;
INSERT INTO S VALUES (9, 'own');
! CREATE TABLE S SHALLOW CLONE T;

-- case: generate
-- begins: events
GENERATE symlink_format_manifest FOR TABLE T;

-- case: convert is done before
-- begins: small
CONVERT TO DELTA T;

-- case: select clauses
-- begins: people
SELECT gender, count(*), sum(salary), avg(salary), min(lastName), max(birthDate) FROM T GROUP BY gender HAVING count(*) > 0 ORDER BY gender;
SELECT DISTINCT gender FROM T ORDER BY gender DESC NULLS LAST LIMIT 2;
SELECT count(1), count(id), count(DISTINCT gender) FROM T WHERE salary BETWEEN 5 AND 150;
SELECT gender, lastName, sum(salary) AS s FROM T GROUP BY ROLLUP (gender, lastName) ORDER BY 1, 2;
SELECT gender, sum(salary) s FROM T GROUP BY GROUPING SETS ((gender), ());
SELECT * EXCEPT (ssn, birthDate) FROM T WHERE lastName LIKE '%e%' AND firstName NOT IN ('Bob');

-- case: select joins
-- begins: people
WITH m AS (SELECT * FROM VALUES ('F', 'female'), ('X', 'other') AS v(code, word))
SELECT p.id, m.word FROM T p LEFT JOIN m ON p.gender = m.code;
SELECT p.id, m.word FROM T p FULL OUTER JOIN (VALUES ('F', 'female'), ('X', 'other')) m(code, word) ON p.gender = m.code;
SELECT id FROM T LEFT SEMI JOIN (SELECT 1 AS id) USING (id);
SELECT id FROM T LEFT ANTI JOIN (SELECT 1 AS id) USING (id);
SELECT a.id, b.id AS other FROM T a CROSS JOIN T b WHERE a.id < b.id;
SELECT a.id FROM T a JOIN T b ON a.id + 1 = b.id;
SELECT id, (SELECT max(salary) FROM T) AS top FROM T o WHERE EXISTS (SELECT 1 FROM T u WHERE u.id = o.id);

-- case: select natural joins without columns
CREATE TABLE T (a INT, m MAP<INT, INT>, s STRUCT<x: INT>) USING DELTA;
CREATE TABLE S (b INT) USING DELTA;
CREATE TABLE U (c INT, a INT) USING DELTA;
INSERT INTO T VALUES (1, map(1, 2), struct(1)), (2, NULL, NULL);
INSERT INTO U VALUES (5, 1), (6, 7);
SELECT * FROM S NATURAL JOIN U;
SELECT * FROM S NATURAL RIGHT JOIN U;
SELECT * FROM S NATURAL FULL JOIN U;
SELECT * FROM U NATURAL LEFT JOIN S;
INSERT INTO S VALUES (8), (9);
SELECT * FROM S NATURAL JOIN U;
SELECT S2.*, c + b AS d FROM S S2 NATURAL JOIN U;
SELECT * FROM S NATURAL JOIN U NATURAL JOIN (SELECT a, 3 AS d FROM T);
SELECT t.a FROM T t JOIN T u USING (s);
! SELECT t.a FROM T t JOIN T u USING (m);
! SELECT * FROM T t NATURAL JOIN T u;
! SELECT * FROM U NATURAL LEFT SEMI JOIN (SELECT a FROM T);
! SELECT * FROM S NATURAL LEFT ANTI JOIN U;

-- case: select joins by names
CREATE TABLE T (k INT, F INT) USING DELTA;
CREATE TABLE S (v INT, f INT) USING DELTA;
CREATE TABLE U (m INT, v BIGINT, k DOUBLE) USING DELTA;
INSERT INTO T VALUES (1, 10), (2, 20), (3, NULL);
INSERT INTO S VALUES (1, 10), (2, 30), (3, NULL);
INSERT INTO U VALUES (7, 1, 1.0), (8, 5, 9.5);
SELECT * FROM T JOIN S USING (f);
SELECT * FROM T LEFT JOIN S USING (F);
SELECT * FROM T RIGHT JOIN S USING (f);
SELECT * FROM T FULL JOIN S USING (f);
SELECT * FROM T LEFT SEMI JOIN S USING (f);
SELECT * FROM T LEFT ANTI JOIN S USING (f);
SELECT * FROM T NATURAL JOIN U;
SELECT * FROM T NATURAL LEFT JOIN U;
SELECT * FROM S NATURAL RIGHT JOIN U;
SELECT * FROM S NATURAL FULL JOIN U;
SELECT * FROM T JOIN S USING (f) JOIN U USING (v);
SELECT * FROM T FULL JOIN S USING (f) FULL JOIN U USING (v);
SELECT * FROM T t JOIN U u USING (k) JOIN S s ON s.v = u.v AND s.f = t.F;
SELECT * FROM T JOIN (S s JOIN U u USING (v)) USING (f, k);
SELECT q.*, t.* FROM T t JOIN (S s JOIN U u USING (v)) q USING (k);
SELECT s.*, t.* FROM T t JOIN S s USING (f);
SELECT s.*, t.* FROM T t FULL JOIN S s USING (f);
SELECT u.*, s.*, t.* FROM T t JOIN S s USING (f) JOIN U u USING (v);
SELECT s.*, u.* FROM S s RIGHT JOIN U u USING (v);
SELECT * EXCEPT (f) FROM T JOIN S USING (f);
SELECT t.f, s.f, f FROM T t FULL JOIN S s USING (f);
SELECT k, f, f + 1 AS more FROM T t LEFT JOIN S s USING (f) WHERE f > 5 ORDER BY f;
SELECT * FROM (SELECT * FROM T JOIN S USING (f)) JOIN U USING (k);
WITH q AS (SELECT * FROM T JOIN S USING (f)), r AS (SELECT * FROM q) SELECT * FROM U JOIN r USING (v);
SELECT * FROM T JOIN S USING (f) UNION ALL SELECT 0.5, 2, 3;
SELECT k FROM T WHERE (F, k, 1) IN (SELECT * FROM T JOIN S USING (f));
SELECT * FROM T t JOIN (SELECT k AS f, 1 AS one FROM T) USING (f);
SELECT f, count(*) AS n FROM T t JOIN S s USING (f) GROUP BY f;
SELECT * FROM T, S s JOIN U u USING (v);
INSERT INTO U SELECT * FROM S JOIN (SELECT 9 AS k, 1 AS v) USING (v);
! SELECT * FROM T t JOIN S s USING (nothing);
! SELECT x.* FROM T t JOIN S s USING (f);

-- case: select windows
-- begins: people
SELECT id, row_number() OVER (ORDER BY salary DESC, id) AS n, rank() OVER (ORDER BY gender) AS r,
  lag(id) OVER (ORDER BY id) AS l, sum(salary) OVER (PARTITION BY gender ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running,
  ntile(2) OVER (ORDER BY id) AS half, first_value(lastName) OVER (PARTITION BY gender ORDER BY id) AS f FROM T;
SELECT id, dense_rank() OVER w AS d, percent_rank() OVER w AS p, cume_dist() OVER w AS c FROM T WINDOW w AS (ORDER BY gender);

-- case: select sets
-- begins: small
SELECT a FROM T UNION SELECT 1;
SELECT a FROM T UNION ALL VALUES (1), (5);
SELECT a FROM T INTERSECT SELECT 1;
SELECT a FROM T EXCEPT SELECT 1;
SELECT a FROM T MINUS SELECT 2;
FROM T SELECT a WHERE a > 1;
TABLE T;
VALUES (1, 'x'), (2, NULL);

-- case: select expressions
-- begins: people
SELECT id, CAST(2.7 AS INT) AS c, salary / 3, salary DIV 7, -7 % 3 AS m, salary * 1.5 AS d, upper(firstName), concat(firstName, ' ', lastName) FROM T;
SELECT CASE WHEN salary > 100 THEN 'rich' WHEN salary IS NULL THEN 'who' ELSE 'poor' END AS c, coalesce(middleName, 'none'), nullif(gender, 'M'), if(id > 1, 1, 0) FROM T;
SELECT substring(lastName, 2, 2), substr(lastName, 0) AS s, left(lastName, 1), length(lastName), trim(' x '), lastName RLIKE 'e+', instr(lastName, 'e'), lpad(lastName, 5, '*') FROM T;
SELECT date_add(birthDate, 30), datediff(birthDate, DATE'2000-01-01'), year(birthDate), month(birthDate), date_trunc('MONTH', birthDate), to_date(birthDate) FROM T;
SELECT id + 1, -salary, id = 1, id <> 1, NOT (id = 1), id IS NULL, id <=> NULL FROM T;

-- case: select nested
-- begins: mapped
SELECT s.x, s, struct(a, b) AS st, named_struct('q', a) AS n, array(a, 5) AS l, map('k', a) AS m FROM T;
SELECT transform(array(1, 2, NULL), x -> x + a) AS t, filter(array(1, 2), x -> x > a) AS f, size(array(1, 2)), array(1, 2)[1], element_at(map('a', 1), 'a') FROM T;
SELECT explode(array(1, 2)) AS e, a FROM T;
SELECT a, e FROM T LATERAL VIEW explode(array(a, 9)) x AS e;
SELECT collect_list(a), sort_array(collect_set(b)) AS s FROM T;

-- case: select aggregates
-- begins: people
SELECT stddev(salary), variance(salary), stddev_pop(salary), var_pop(salary), corr(id, salary) FROM T WHERE id < 10;
SELECT max_by(firstName, salary), min_by(firstName, salary), bool_and(id > 0), bool_or(id > 5), every(id > 0), count_if(salary > 100), any_value(1) FROM T;
SELECT percentile(salary, 0.5) AS p, median(salary), mode(1), bit_and(id), bit_or(id), bit_xor(id) FROM T;
SELECT sum(DISTINCT salary), sum(salary) FILTER (WHERE gender = 'M') AS m, avg(CAST(salary AS DECIMAL(10, 2))), sum(CAST(salary AS DECIMAL(10, 2))) FROM T;
SELECT count(*), sum(id), avg(id), max(id), count_if(id > 0), collect_list(id) FROM T WHERE false;

-- case: select errors
-- begins: small
! SELECT 1 / 0;
! SELECT a % 0 FROM T;
! SELECT CAST('x' AS INT);
! SELECT CAST(300 AS TINYINT);
! SELECT 2147483647 + 1;
! SELECT CAST(b AS INT) FROM T;
! SELECT true = 1;
! SELECT nothing FROM T;
! SELECT a FROM T GROUP BY b;
! SELECT array(1)[5];
! SELECT to_date('nonsense');
