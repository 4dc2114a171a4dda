// Nothing: the target that the unit tests share their precompiled headers with needs a source.
