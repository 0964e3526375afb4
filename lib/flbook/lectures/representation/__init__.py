"""Chapter 1: why learned features beat fixed ones."""

# Where its experiments are: a folder or file of this chapter, or a file in a lecture's folder.
EXPERIMENTS = ()
