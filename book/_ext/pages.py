"""What this book's pages need beyond Jupyter Book: nothing on them may fail, or ask another host for anything."""

from sphinx.application import Sphinx


def drop_thebe(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    """Leave out Thebe, which Jupyter Book injects twice (its second `const` is an error) and which loads from a CDN."""
    context["script_files"] = [
        script
        for script in context["script_files"]
        if "thebe" not in str(getattr(script, "filename", script) or "")
        and "thebe" not in str(getattr(script, "attributes", {}).get("body", ""))
    ]


def one_search_field(app: Sphinx, config) -> None:
    """Leave out the search field above the page, since the sidebar has one.

    Here and not in _config.yml, where it would replace all other options of the theme.
    """
    config.html_theme_options = {**config.html_theme_options, "navbar_persistent": []}


def setup(app: Sphinx) -> dict:
    """Register with Sphinx, after the themes have said what they want."""
    app.connect("config-inited", one_search_field)
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
