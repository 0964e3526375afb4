"""How the book is made and read: claims and their lines, the executor of lectures, the ledger."""
