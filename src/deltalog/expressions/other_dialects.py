"""The functions of other SQL dialects, and what to write instead in Spark's SQL.

Protocol: none
"""

from __future__ import annotations

from typing import Final

_WHOLE_JSON: Final = "no function: parse the strings in Python, or store them as VARIANT"
_MOMENT: Final = "to_timestamp(string, 'yyyy-MM-dd HH:mm:ss')"
_PERCENTILE: Final = "percentile(value, 0.5)"

OTHER_DIALECTS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("strftime", "format_date", "format_timestamp", "format_datetime"),
        "date_format(moment, 'yyyy-MM-dd')",
    ),
    "to_char": "date_format(moment, 'yyyy-MM-dd'); for numbers, format_number(value, 2)",
    "strptime": "to_timestamp(string, 'yyyy-MM-dd')",
    **dict.fromkeys(("parse_datetime", "parse_timestamp"), _MOMENT),
    **dict.fromkeys(("str_to_date", "parse_date"), "to_date(string, 'yyyy-MM-dd')"),
    "try_to_date": "try_cast(string AS DATE)",
    **dict.fromkeys(("today", "curdate"), "current_date()"),
    **dict.fromkeys(("getdate", "sysdate", "systimestamp"), "current_timestamp()"),
    **dict.fromkeys(("epoch", "to_unixtime"), "unix_timestamp(timestamp)"),
    "epoch_ms": "unix_millis(timestamp)",
    "epoch_us": "unix_micros(timestamp)",
    "age": "datediff(end, start)",
    **dict.fromkeys(("datetrunc", "timestamp_trunc"), "date_trunc('month', moment)"),
    **dict.fromkeys(("time_bucket", "date_bin"), "date_trunc('hour', moment)"),
    **dict.fromkeys(("timestamp_add", "datetime_add"), "timestampadd(HOUR, 1, moment)"),
    **dict.fromkeys(("timestamp_sub", "datetime_sub"), "timestampadd(HOUR, -1, moment)"),
    "adddate": "date_add(date, days)",
    "subdate": "date_sub(date, days)",
    **dict.fromkeys(("date_from_parts", "datefromparts"), "make_date(year, month, day)"),
    "eomonth": "last_day(date)",
    "week": "weekofyear(date)",
    "isodow": "weekday(date) + 1",
    **dict.fromkeys(("monthname", "month_name"), "date_format(date, 'MMM')"),
    **dict.fromkeys(("dayname", "day_name"), "date_format(date, 'E')"),
    "date": "to_date(value), or CAST(value AS DATE)",
    **dict.fromkeys(("to_number", "to_numeric", "to_decimal"), "CAST(value AS DECIMAL(18, 2))"),
    "try_to_number": "try_cast(value AS DECIMAL(18, 2))",
    "to_double": "CAST(value AS DOUBLE)",
    **dict.fromkeys(("to_varchar", "to_string", "tostring"), "CAST(value AS STRING)"),
    "convert": "CAST(value AS type)",
    "try_convert": "try_cast(value AS type)",
    "top": "LIMIT n at the end of the query",
    **dict.fromkeys(
        ("rownum", "rowid"),
        "no function: LIMIT n limits the rows; row_number() OVER (ORDER BY …) numbers them",
    ),
    **dict.fromkeys(("datalength", "bytes"), "octet_length(value)"),
    "isnumeric": "try_cast(value AS DOUBLE) IS NOT NULL",
    "len": "length(string)",
    **dict.fromkeys(("strpos", "stringpos"), "instr(string, part)"),
    **dict.fromkeys(("starts_with", "prefix"), "startswith(string, part)"),
    **dict.fromkeys(("ends_with", "suffix"), "endswith(string, part)"),
    "mid": "substring(string, position, length)",
    "replicate": "repeat(string, count)",
    "format": "format_string('%s', value)",
    **dict.fromkeys(("string_split", "string_to_array", "str_split"), "split(string, pattern)"),
    **dict.fromkeys(("array_to_string", "list_to_string"), "array_join(array, ', ')"),
    **dict.fromkeys(("regexp_matches", "regexp_full_match"), "regexp_like(string, pattern)"),
    "regexp_substr": "regexp_extract(string, pattern, 0)",
    "sha256": "sha2(string, 256)",
    "md5_hex": "md5(string)",
    "to_hex": "hex(value)",
    "to_base64": "base64(value)",
    **dict.fromkeys(
        ("json_extract", "json_extract_string", "json_extract_path_text", "json_value"),
        _WHOLE_JSON,
    ),
    **dict.fromkeys(
        ("json_query", "jsonb_extract_path", "parse_json", "try_parse_json", "variant_get"),
        _WHOLE_JSON,
    ),
    **dict.fromkeys(("isin", "is_in"), "value IN (1, 2)"),
    **dict.fromkeys(("notin", "not_in"), "value NOT IN (1, 2)"),
    "is_null": "value IS NULL",
    "is_not_null": "value IS NOT NULL",
    "list_contains": "array_contains(array, value)",
    **dict.fromkeys(("array_length", "list_length", "len_array"), "size(array)"),
    **dict.fromkeys(("list_sort", "list_reverse_sort"), "sort_array(array)"),
    "list_distinct": "array_distinct(array)",
    "list_transform": "transform(array, x -> …)",
    "list_filter": "filter(array, x -> …)",
    "list_aggregate": "aggregate(array, start, (total, x) -> …)",
    **dict.fromkeys(("array_cat", "list_concat", "list_cat"), "concat(array, array)"),
    **dict.fromkeys(("array_append", "list_append"), "concat(array, array(value))"),
    **dict.fromkeys(("list_value", "array_construct"), "array(1, 2)"),
    **dict.fromkeys(("struct_pack", "object_construct", "row"), "named_struct('name', value)"),
    "struct_extract": "struct.field",
    **dict.fromkeys(("list", "list_agg"), "collect_list(value)"),
    "group_concat": "listagg(value, ',')",
    "unnest": "explode(array)",
    **dict.fromkeys(("generate_series", "generate_array"), "explode(sequence(1, 3))"),
    **dict.fromkeys(("iif", "iff"), "if(condition, value, otherwise)"),
    "choose": "CASE … WHEN … THEN … END",
    "zeroifnull": "coalesce(value, 0)",
    "nullifzero": "nullif(value, 0)",
    "div0": "coalesce(try_divide(value, divisor), 0)",
    "safe_divide": "try_divide(value, divisor)",
    "safe_cast": "try_cast(value AS type)",
    "truncate": "trunc(date, 'MONTH') for dates; for numbers, CAST(value AS BIGINT)",
    "round_half_even": "bround(value, digits)",
    "pg_typeof": "typeof(value)",
    "sumif": "sum(CASE WHEN condition THEN value END)",
    **dict.fromkeys(("quantile_cont", "percentile_cont", "quantile"), _PERCENTILE),
    **dict.fromkeys(("quantile_disc", "percentile_disc"), _PERCENTILE),
    **dict.fromkeys(("approx_quantile", "approx_percentile", "percentile_approx"), _PERCENTILE),
    "some": "bool_or(condition)",
    **dict.fromkeys(
        (
            "current_user",
            "session_user",
            "user",
            "current_role",
            "current_database",
            "current_schema",
            "current_catalog",
            "version",
        ),
        "no function: pass it as a parameter",
    ),
    **dict.fromkeys(("current_time", "localtime"), "no function: a table has no times of day"),
}
"""Functions of other SQL dialects → those of Spark, or how to do without."""


_WORDS: Final = frozenset(
    {"today", "rownum", "rowid", "sysdate", "getdate", "user", "current_user", "session_user",
     "current_role", "current_schema", "current_catalog", "current_database", "current_time",
     "localtime"}
)  # fmt: skip
"""Functions that other dialects call without brackets."""


def instead_of_word(word: str) -> str:
    """Return what to write instead of a function without brackets; empty if it is unknown."""
    return instead_of(word) if word in _WORDS else ""


def instead_of(name: str) -> str:
    """Return what to write instead of a function of another dialect; empty if it is unknown."""
    instead = OTHER_DIALECTS.get(name)
    if instead is None:
        return ""
    head, colon, advice = instead.partition("no function: ")
    return f"; {advice}" if colon and not head else f"; in Spark's SQL, write {instead}"
