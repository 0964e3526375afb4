"""What Sphinx builds the book with if Jupyter Book does not: made of _config.yml by `make conf`, never by hand."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "book" / "_ext"))

author = 'The flbook authors'
bibtex_bibfiles = ['book/references.bib']
bibtex_default_style = 'plain'
bibtex_reference_style = 'author_year'
copybutton_selector = 'div.cell_input div.highlight pre, div.highlight-bash pre'
copyright = '2026'
exclude_patterns = ['**.ipynb_checkpoints', '*.md', '.*', '.DS_Store', 'Thumbs.db', '_build', 'bench', 'book/assignments/masters', 'book/dependencies.md', 'book/under_benign.md', 'build', 'lib', 'tests']
extensions = ['sphinx_togglebutton', 'sphinx_copybutton', 'myst_nb', 'sphinx_external_toc', 'sphinx.ext.intersphinx', 'sphinx_design', 'sphinx_book_theme', 'sphinx_proof', 'sphinx_exercise', 'sphinx-mathjax-offline', 'pages', 'proofs', 'finding', 'links', 'published', 'sphinxcontrib.bibtex', 'sphinx_multitoc_numbering']
external_toc_exclude_missing = True
external_toc_path = '_toc.yml'
html_baseurl = ''
html_context = {'default_mode': 'auto'}
html_css_files = ['flbook.css']
html_favicon = 'book/_static/favicon.svg'
html_js_files = ['predict.js', 'present.js', 'scrolling.js']
html_last_updated_fmt = None
html_logo = 'book/_static/logo.svg'
html_show_copyright = False
html_sourcelink_suffix = ''
html_static_path = ['book/_static']
html_theme = 'sphinx_book_theme'
html_theme_options = {'search_bar_text': 'Search this book...', 'launch_buttons': {'notebook_interface': 'jupyterlab', 'binderhub_url': 'https://mybinder.org', 'jupyterhub_url': '', 'thebe': False, 'colab_url': 'https://colab.research.google.com', 'deepnote_url': ''}, 'path_to_docs': '', 'repository_url': 'https://github.com/flbook/flbook', 'repository_branch': 'main', 'extra_footer': 'Text and figures CC BY 4.0, code BSD-3-Clause.', 'home_page_in_toc': False, 'announcement': '', 'analytics': {'google_analytics_id': '', 'plausible_analytics_domain': '', 'plausible_analytics_url': 'https://plausible.io/js/script.js'}, 'use_repository_button': True, 'use_edit_page_button': False, 'use_issues_button': True}
html_title = 'Feature Learning'
language = 'en'
linkcheck_anchors = False
linkcheck_ignore = ['https://doi\\.org/']
linkcheck_report_timeouts_as_broken = False
linkcheck_retries = 2
linkcheck_timeout = 30
myst_enable_extensions = ['amsmath', 'colon_fence', 'deflist', 'dollarmath', 'html_image', 'substitution', 'attrs_inline', 'attrs_block']
myst_heading_anchors = 2
myst_url_schemes = ['mailto', 'http', 'https']
nb_execution_allow_errors = False
nb_execution_cache_path = ''
nb_execution_excludepatterns = []
nb_execution_in_temp = False
nb_execution_mode = 'off'
nb_execution_timeout = 30
nb_merge_streams = True
nb_output_stderr = 'show'
numfig = True
numfig_format = {'figure': 'Figure %s'}
numfig_secnum_depth = 1
proof_minimal_theme = True
pygments_style = 'sphinx'
suppress_warnings = ['myst.domains']
templates_path = ['book/_templates']
togglebutton_hint = 'Show'
togglebutton_hint_hide = 'Hide'
use_multitoc_numbering = True
