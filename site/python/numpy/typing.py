"""Names for annotations, which nothing looks at here."""

NDArray = ArrayLike = DTypeLike = list
