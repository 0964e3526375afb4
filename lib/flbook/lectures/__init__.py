"""The lectures' own part of the library: a folder a lecture, with its experiments and what nothing else uses."""
