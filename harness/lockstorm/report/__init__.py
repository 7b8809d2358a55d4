"""The report: a trial or a matrix as a page, a picture, or a table in the terminal."""
