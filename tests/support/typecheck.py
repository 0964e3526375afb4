"""What checks flbook's annotations under pytest: beartype, an int being as good as a float (PEP 484)."""

from beartype import BeartypeConf, beartype

typechecked = beartype(conf=BeartypeConf(is_pep484_tower=True))
