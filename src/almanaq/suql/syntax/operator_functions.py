"""PostgreSQL's functions behind its operators, called by their names: `date_mi(a, b)` is `a - b`.

What an operator may do, its function may; those that take what a query may not write (`oid`, `tid`, access lists) are
not among them. Each is checked against the server's catalog as all allowed functions are.
"""

from __future__ import annotations

_FAMILIES = {
    "eq ge gt le lt ne": """
        bit bool bpchar bytea cash_ char date_ enum_ float4 float48 float8 float84 int2 int24 int28 int4 int42 int48
        int8 int82 int84 interval_ multirange_ name network_ numeric_ record_ time_ timestamp_ timestamptz_ timetz_
        uuid_ varbit
    """,
    "div mi mul pl": "float4 float48 float84 int2 int24 int28 int42 int48 int82 int84 interval_",
    "larger smaller": """
        bpchar_ cash date_ enum_ float4 float8 int2 int4 int8 interval_ network_ numeric_ time_ timestamp_
        timestamptz_ timetz_
    """,
    "cmp": """
        bit bpchar btarray btbool btchar btfloat4 btfloat8 btint2 btint4 btint8 btname btrecord bttext bytea cash_
        date_ enum_ interval_ multirange_ network_ numeric_ time_ timestamp_ timestamptz_ timetz_ uuid_ varbit
    """,
    "and mod not or shl shr um up xor": "int2 int4 int8",
    "send": """
        array_ bit_ bool bpchar bytea cash_ date_ inet_ int2 int4 int8 interval_ json_ jsonb_ name numeric_ range_
        text time_ timestamp_ timestamptz_ timetz_ uuid_ varbit_ varchar
    """,
    "iclike icnlike icregexeq icregexne like nlike regexeq regexne": "bpchar name",
}
"""What names end with ⇒ what they begin with."""
_OTHERS = """
    anytextcat bitand bitcat bitnot bitor bitshiftleft bitshiftright bitxor byteacat bytealike byteanlike
    cash_div_cash cash_div_flt4 cash_div_flt8 cash_div_int2 cash_div_int4 cash_div_int8 cash_mi cash_mul_flt4
    cash_mul_flt8 cash_mul_int2 cash_mul_int4 cash_mul_int8 cash_pl cash_words date_mi date_mi_interval date_mii
    date_pl_interval date_pli datetime_pl datetimetz_pl dround dtrunc float4_accum float4abs float4um float4up
    float8_corr float8_covar_pop float8_covar_samp float8_regr_avgx float8_regr_avgy float8_regr_intercept
    float8_regr_r2 float8_regr_slope float8_regr_sxx float8_regr_sxy float8_regr_syy float8_stddev_pop
    float8_stddev_samp float8_var_pop float8_var_samp float8um float8up inetand inetmi inetmi_int8 inetnot inetor
    inetpl int2abs int4inc int8dec int8inc integer_pl_date interval_pl_date interval_pl_time interval_pl_timestamp
    interval_pl_timestamptz interval_um like_escape mul_d_interval network_overlap network_sub network_subeq
    network_sup network_supeq numeric_div_trunc numeric_uminus numeric_uplus similar_escape similar_to_escape
    textanycat texticnlike texticregexeq texticregexne textregexne time_mi_interval time_mi_time time_pl_interval
    timedate_pl timestamp_mi timestamp_mi_interval timestamp_pl_interval timestamptz_mi timestamptz_mi_interval
    timestamptz_pl_interval timetz_mi_interval timetz_pl_interval timetzdate_pl
"""
OPERATOR_FUNCTIONS = " ".join(
    [
        _OTHERS,
        *(start + end for ends, starts in _FAMILIES.items() for start in starts.split() for end in ends.split()),
    ]
)
"""Their names."""
