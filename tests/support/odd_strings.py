"""Strings that readers of YAML may take for something else."""

from hypothesis import strategies as st

FAILED = (
    "72225e2",
    "1e3",
    "y",
    "0o17",
    "N",
    "~",
    "null",
    "0x1F",
    "0b1",
    "1_000",
    "190:20:30",
    "2026-11-25",
    ".inf",
    "=",
    "on",
    "NO",
    "12:30:45",
    "<<",
    "0x1f",
    "--",
    "---",
    "-a",
)
ODD_STRINGS = st.one_of(
    st.sampled_from(FAILED),
    st.from_regex(r"[-+]?(0[xob])?[0-9a-f_]{1,6}(\.[0-9]{0,3})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"[0-9]{1,4}([:-][0-9]{1,2}){1,2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?Z?)?", fullmatch=True),
    st.from_regex(r"(?i)(yes|no|on|off|true|false|null|\.?nan|[-+]?\.?inf|<<|=|y|n|t|f)", fullmatch=True),
    st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,12}[a-z0-9])?", fullmatch=True),
    st.from_regex(r"[ -~]{0,20}", fullmatch=True),
    st.from_regex(r"[a-z]{1,60}/[-a-z0-9. ]{100,250}", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=120),
)
