"""Claims: what a lecture says before it measures, read from its file, checked, and shown in one line on its page."""
