"""The functions that a query may call, and on which engines: the whole list.

A function that is not named here is refused, whatever the database has. To allow one more, put its name into a block
of `_ALLOWED`; where sqlglot reads it as a class of its own, beside that class in `_CLASSES` as well; where its number
of arguments is fixed, into `argument_counts.py`.
Only what computes a value from its arguments belongs here: nothing that reads files, settings or other tables by name,
waits, locks, writes, or runs a text as SQL. What a function does is what counts, not for whom it was made:
`float8_combine` and other parts of PostgreSQL's own aggregates add up arrays of numbers, `ts_headline` cuts a text by
rules that the owner of the database named. `tests/security/test_postgres_functions.py` holds PostgreSQL's names against
the server's catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from almanaq.suql.syntax.operator_functions import OPERATOR_FUNCTIONS

ENGINES = ("duckdb", "postgres", "mysql", "trino", "clickhouse", "snowflake", "bigquery", "databricks", "spark")
"""sqlglot's names of the dialects of the engines that a query may run on."""

_ALLOWED: Mapping[tuple[str, ...], str] = {
    ENGINES: """
        abs acos age any_value arg_max arg_min array array_agg array_any array_append array_cat array_length
        array_position array_prepend array_remove array_to_string ascii asin atan atan2 avg
        bit_and bit_length bit_or bit_xor bool_and bool_or btrim
        cardinality cast cbrt ceil ceiling char_length character_length chr coalesce concat concat_ws corr cos cot count
        covar_pop covar_samp cume_dist current_date current_time current_timestamp
        date date_part date_trunc datetime day degrees dense_rank div every exists exp extract
        factorial first_value floor format gcd generate_series greatest group_concat grouping
        if ifnull iif initcap instr isfinite
        json_agg json_array_elements json_array_length json_build_object json_extract_path json_extract_path_text
        json_object_agg jsonb_agg jsonb_array_elements jsonb_array_length jsonb_build_object jsonb_extract_path_text
        justify_days lag last_value lcm lead least left length levenshtein ln localtime localtimestamp log log10 lower
        lpad ltrim make_date make_time make_timestamp max md5 median min mod mode month
        now nth_value ntile nullif nvl octet_length overlay
        percent_rank percentile_cont percentile_disc pi position pow power radians random rank
        regexp_count regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
        regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
        repeat replace reverse right round row_number rpad rtrim
        sha256 sign sin split_part sqrt starts_with stddev stddev_pop stddev_samp strftime string_agg string_to_array
        strip strpos substr substring sum tan to_char to_date to_number to_timestamp translate trim trunc
        unnest upper var_pop var_samp variance width_bucket year
    """,
    ("duckdb", "postgres"): """
        acosh asinh atanh cosh gen_random_uuid quarter regexp_instr regexp_substr sinh tanh to_hex
    """,
    ("postgres",): """
        abbrev acosd area array_dims array_fill array_larger array_lower array_ndims array_positions
        array_replace array_smaller array_to_json array_to_tsvector array_upper asind atan2d atand bit bit_count
        bool booland_statefunc booleq boolne boolor_statefunc bound_box box bpchar broadcast casefold center
        cidr circle clock_timestamp convert convert_from convert_to cosd cotd crc32 crc32c date_add date_bin
        date_subtract datemultirange daterange decode diagonal diameter encode enum_first enum_last enum_range
        erf erfc family float4 float4send float8 float8_accum float8_combine float8_regr_accum
        float8_regr_combine float8send format_type gamma generate_subscripts get_bit get_byte height host
        hostmask inet_merge inet_same_family int2 int4 int4multirange int4range int8 int8multirange int8range
        is_normalized isclosed isempty ishorizontal isopen isparallel isperp isvertical json_array
        json_array_elements_text json_build_array json_each json_each_text json_object json_object_keys
        json_populate_record json_populate_recordset json_strip_nulls json_to_record json_to_recordset
        json_to_tsvector json_typeof jsonb_array_elements_text jsonb_build_array jsonb_concat jsonb_contained
        jsonb_contains jsonb_delete jsonb_delete_path jsonb_each jsonb_each_text jsonb_exists jsonb_exists_all
        jsonb_exists_any jsonb_extract_path jsonb_insert jsonb_object jsonb_object_agg jsonb_object_keys
        jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
        jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz
        jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax
        jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_hours
        justify_interval lgamma line lower_inc lower_inf lseg macaddr macaddr8 macaddr8_set7bit make_interval
        make_timestamptz masklen min_scale money multirange name netmask network normalize npoints num_nonnulls
        num_nulls numeric numeric_inc nummultirange numnode numrange oid overlaps parse_ident path pclose
        pg_collation_for pg_column_size pg_size_bytes pg_size_pretty pg_typeof phraseto_tsquery plainto_tsquery
        point polygon popen querytree quote_ident quote_literal quote_nullable radius range_agg
        range_intersect_agg range_merge regexp_split_to_table row row_to_json scale
        set_bit set_byte set_masklen setweight sha224 sha384 sha512 sind slope statement_timestamp
        string_to_table tand text textlen timeofday timestamptz timetz timezone to_ascii to_bin to_json to_jsonb
        to_oct to_tsquery to_tsvector transaction_timestamp trim_array trim_scale ts_delete ts_filter
        ts_headline ts_lexize ts_rank ts_rank_cd tsmultirange tsquery_phrase tsrange tstzmultirange tstzrange
        tsvector_to_array unistr upper_inc upper_inf varbit varchar websearch_to_tsquery width xid
        xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xmlagg xmlcomment xmlconcat
        xpath xpath_exists
        array_eq array_ge array_gt array_le array_lt array_ne arraycontained
        arraycontains arrayoverlap dcbrt dexp dlog1 dlog10 dpow dsqrt elem_contained_by_multirange
        elem_contained_by_range float8_avg float8abs float8div float8mi float8mul float8pl hashtext int4abs int4div
        int4mi int4mod int4mul int4pl int8abs int8div int8mi int8mod int8mul int8pl json json_array_element
        json_array_element_text json_object_field json_object_field_text jsonb jsonb_array_element
        jsonb_array_element_text jsonb_cmp jsonb_eq jsonb_ge jsonb_gt jsonb_le jsonb_lt jsonb_ne jsonb_object_field
        jsonb_object_field_text multirange_adjacent_multirange multirange_contains_elem
        multirange_contains_multirange multirange_contains_range multirange_intersect multirange_minus
        multirange_union numeric_abs numeric_add numeric_div numeric_eq numeric_exp numeric_ln numeric_log numeric_mod
        numeric_mul numeric_power numeric_sqrt numeric_sub range_adjacent range_after range_before range_cmp
        range_contained_by range_contains range_contains_elem range_contains_multirange range_eq range_ge range_gt
        range_intersect range_le range_lt range_minus range_ne range_overlaps range_overleft range_overright
        range_union text_ge text_gt text_larger text_le text_lt text_smaller textcat texteq texticlike textlike textne
        textnlike textregexeq tsquery_and tsquery_not tsquery_or
    """
    + OPERATOR_FUNCTIONS,
}
FUNCTIONS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(engine for engines, names in _ALLOWED.items() if name in names.split() for engine in engines)
        for names in _ALLOWED.values()
        for name in names.split()
    }
)
"""Each function that a query may call, in lower case ⇒ the engines on which it may."""

AGGREGATES = frozenset("every jsonb_agg range_agg range_intersect_agg xmlagg".split())
"""Aggregates that sqlglot has no class for."""
WRITTEN = "written"
"""The key of a node's meta under which stands what the query called a function that sqlglot has a class for."""
ENUM_FUNCTIONS = frozenset("enum_first enum_last enum_range".split())
"""Functions that give values of an ENUM's type, whatever column has it."""

_CLASSES = """
    Abs: abs
    Acos: acos
    Acosh: acosh
    AnyValue: any_value
    ArgMax: arg_max
    ArgMin: arg_min
    Array: array
    ArrayAgg: array_agg
    ArrayAny: array_any
    ArrayAppend: array_append
    ArrayConcat: array_cat
    ArrayPosition: array_position
    ArrayPrepend: array_prepend
    ArrayRemove: array_remove
    ArraySize: array_length
    ArrayToString: array_to_string
    Ascii: ascii
    Asin: asin
    Asinh: asinh
    Atan: atan
    Atan2: atan2
    Atanh: atanh
    Avg: avg
    BitLength: bit_length
    BitwiseAndAgg: bit_and
    BitwiseOrAgg: bit_or
    BitwiseXorAgg: bit_xor
    Cast: cast div
    Cbrt: cbrt
    Ceil: ceil ceiling
    Chr: chr
    Coalesce: coalesce ifnull nvl
    Concat: concat
    ConcatWs: concat_ws
    Corr: corr
    Cos: cos
    Cosh: cosh
    Cot: cot
    Count: count
    CovarPop: covar_pop
    CovarSamp: covar_samp
    CumeDist: cume_dist
    CurrentDate: current_date
    CurrentTime: current_time
    CurrentTimestamp: current_timestamp now
    Date: date
    DateBin: date_bin
    Datetime: datetime
    Day: day
    Decode: decode
    Degrees: degrees
    DenseRank: dense_rank
    Encode: encode
    Exists: exists
    Exp: exp
    Explode: unnest
    ExplodingGenerateSeries: generate_series
    Extract: extract date_part
    Factorial: factorial
    FirstValue: first_value
    Floor: floor
    Format: format
    GenerateSeries: generate_series
    Getbit: get_bit
    Greatest: greatest
    GroupConcat: string_agg group_concat
    Grouping: grouping
    Hex: to_hex
    If: if iif
    Initcap: initcap
    IntDiv: div
    JSONArray: json_array
    JSONArrayAgg: json_agg
    JSONBObjectAgg: jsonb_object_agg
    JSONExtract: json_extract_path
    JSONExtractScalar: json_extract_path_text
    JSONObject: json_object
    JSONObjectAgg: json_object_agg
    JSONStripNulls: json_strip_nulls
    JustifyDays: justify_days
    JustifyHours: justify_hours
    JustifyInterval: justify_interval
    Lag: lag
    LastValue: last_value
    Lead: lead
    Least: least
    Left: left
    Length: length char_length character_length
    Levenshtein: levenshtein
    Ln: ln
    Localtime: localtime
    Localtimestamp: localtimestamp
    Log: log log10
    LogicalAnd: bool_and
    LogicalOr: bool_or
    Lower: lower
    MD5: md5
    MakeInterval: make_interval
    Max: max
    Median: median
    Min: min
    Mod: mod
    Mode: mode
    Month: month
    Normalize: normalize
    NthValue: nth_value
    Ntile: ntile
    Nullif: nullif
    Overlay: overlay
    Pad: lpad rpad
    PercentRank: percent_rank
    PercentileCont: percentile_cont
    PercentileDisc: percentile_disc
    Pi: pi
    Pow: power pow
    Quarter: quarter
    Radians: radians
    Rand: random
    Rank: rank
    RegexpCount: regexp_count
    RegexpInstr: regexp_instr
    RegexpLike: regexp_like
    RegexpReplace: regexp_replace
    RegexpSubstr: regexp_substr
    RegrAvgx: regr_avgx
    RegrAvgy: regr_avgy
    RegrCount: regr_count
    RegrIntercept: regr_intercept
    RegrR2: regr_r2
    RegrSlope: regr_slope
    RegrSxx: regr_sxx
    RegrSxy: regr_sxy
    RegrSyy: regr_syy
    Repeat: repeat
    Replace: replace
    Reverse: reverse
    Right: right
    Round: round
    RowNumber: row_number
    SHA2: sha256 sha384 sha512
    Sign: sign
    Sin: sin
    Sinh: sinh
    SplitPart: split_part
    Sqrt: sqrt
    StartsWith: starts_with
    Stddev: stddev
    StddevPop: stddev_pop
    StddevSamp: stddev_samp
    StrPosition: strpos position instr
    StrToDate: to_date
    StrToTime: to_timestamp
    StringToArray: string_to_array
    Substring: substring substr
    Sum: sum
    Tan: tan
    Tanh: tanh
    TimeFromParts: make_time
    TimeToStr: to_char
    TimestampFromParts: make_timestamp
    TimestampTrunc: date_trunc
    ToNumber: to_number
    Translate: translate
    Trim: trim ltrim rtrim btrim
    Trunc: trunc
    UnixToTime: to_timestamp
    Unnest: unnest
    Upper: upper
    Uuid: gen_random_uuid
    Variance: variance var_samp
    VariancePop: var_pop
    WidthBucket: width_bucket
    Year: year
"""
CLASSES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        kind.strip(): frozenset(names.split())
        for kind, _, names in (line.partition(":") for line in _CLASSES.strip().splitlines())
    }
)
"""Each class of sqlglot that a function call may be read as ⇒ the functions that it stands for."""


def is_allowed(name: str, engine: str | None = None) -> bool:
    """Return whether a query may call a function on an engine (None: on any that has it)."""
    engines = FUNCTIONS.get(name.lower(), frozenset())
    return bool(engines) if engine is None else engine in engines


def functions_of(engine: str | None = None) -> tuple[str, ...]:
    """Return the functions that may be called on an engine (None: on any), in alphabetical order."""
    return tuple(sorted(name for name in FUNCTIONS if is_allowed(name, engine)))
