"""Numbers of the file formats, under the names of generated code."""
