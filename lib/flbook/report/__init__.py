"""A report on a network of one's own: what `flbook.observe` measures, as one HTML page.

``report.write("my_module.py:make", "my_data.npz", "report.html")`` does what the command line does by
``python -m flbook observe my_module.py:make --data my_data.npz --out report.html``.
"""

from flbook.report.sheet import write

__all__ = ["write"]
