"""How the book is made and read: claims and their lines, the executor of lectures, the ledger."""

EDITION = "2026.1"  # of the book, its claims and numbers: a year and a count within it; the library has its own version
