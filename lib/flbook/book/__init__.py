"""How the book is made and read: key numbers and their rows, the executor of lectures, the ledger."""
