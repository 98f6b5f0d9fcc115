"""Messages for names of NumPy and SciPy that this package lacks, or has under another name."""

_PRODUCT = "use sunzi.gemm(a, b), or a @ b for two objects of type Matrix"
_TENSORS = "sunzi has no tensors, only matrices; use sunzi.gemm or sunzi.solve on reshaped operands"
_SQUARES = "sunzi has no singular values; sunzi.extreme_eigenvalue(sunzi.syrk(a)) encloses the square of an extreme one"

_INSTEAD = {
    "lu_factor": "use sunzi.lu(a)",
    "lu_solve": "use sunzi.lu(a).solve(b)",
    "qr": "sunzi has no QR factorisation; the Cholesky factor of sunzi.syrk(a) is R up to signs, but loses twice as "
    "many bits",
    "svd": _SQUARES,
    "eig": "sunzi has only extreme eigenvalues of symmetric matrices: use sunzi.extreme_eigenvalue or "
    "sunzi.pencil_eigenvalue",
    "schur": "sunzi has only extreme eigenvalues of symmetric matrices: use sunzi.extreme_eigenvalue",
    "lstsq": "sunzi has no least squares by QR; sunzi.solve(sunzi.syrk(a), sunzi.gemm(a, b, transpose_a=True)) solves "
    "the normal equations, which lose twice as many bits",
    "pinv": "sunzi has no pseudo-inverses; use sunzi.inverse(a) for nonsingular square matrices",
    "expm": "sunzi has no functions of matrices; sunzi.exp, sunzi.log and sunzi.sqrt apply to each entry",
    "inv": "use sunzi.inverse(a)",
    "cond": "use sunzi.condition(a), an estimate for symmetric positive definite matrices",
    "slogdet": "use sunzi.log_det(a) for symmetric positive definite matrices, else sunzi.det(a)",
    "ldl": "use sunzi.ldlt(a), without pivoting",
    "LinAlgError": "sunzi raises sunzi.NotPositiveDefiniteError, sunzi.NotSymmetricError and sunzi.SingularError, which "
    "are kinds of ValueError",
    "matmul": _PRODUCT,
    "multi_dot": "sunzi does not choose the order of several products; use a @ (b @ c) for objects of type Matrix, or "
    "sunzi.gemm",
    "matrix_power": "sunzi has no powers of matrices; use a @ a of a Matrix",
    "matrix_rank": "sunzi has no ranks of matrices",
    "matrix_norm": "use sunzi.norm(a, ord)",
    "matrix_transpose": "use a.T of a Matrix; transpose= of the functions needs no copy",
    "cross": "sunzi has no cross products",
    "outer": "use sunzi.ger(x, y)",
    "vecdot": "use sunzi.dot(x, y)",
    "tensordot": _TENSORS,
    "array": "use sunzi.Matrix(data)",
    "identity": "use sunzi.eye(n, precision=bits)",
    "abs": "use sunzi.absolute(a), or abs(a) of a Matrix",
    "ones": "use sunzi.zeros(rows, cols, precision=bits) + 1",
    "diag": "use sunzi.diagonal(a) for the diagonal of a matrix",
    "load": "use sunzi.Matrix.load(path)",
    "save": "use matrix.save(path) of a sunzi.Matrix",
    "cho_factor": "use sunzi.Cholesky(a)",
    "cho_solve": "use sunzi.Cholesky(a).solve(b)",
    "solve_triangular": "use sunzi.trsm(t, b)",
    "multiply": "sunzi has no products entry by entry; a * x of a Matrix and a number scales all entries",
    "power": "sunzi has no powers of entries; use sunzi.square, sunzi.sqrt, or sunzi.exp of a multiple of sunzi.log",
}
_SAME = {
    "eigh": "eig",
    "eigvals": "eig",
    "eigvalsh": "eig",
    "svdvals": "svd",
    "vector_norm": "matrix_norm",
    "tensorinv": "tensordot",
    "tensorsolve": "tensordot",
    "einsum": "tensordot",
    "pinvh": "pinv",
    "logm": "expm",
    "sqrtm": "expm",
    "funm": "expm",
    "hessenberg": "schur",
    "loadtxt": "load",
    "savetxt": "save",
    "asarray": "array",
    "matrix": "array",
    "inner": "vecdot",
    "vdot": "vecdot",
    "transpose": "matrix_transpose",
    "divide": "multiply",
    "pow": "power",
}


def absent(name: str) -> str:
    """The message for the missing attribute `name` of `sunzi`."""
    if name == "linalg":
        return "module 'sunzi' has no attribute 'linalg': its functions are attributes of sunzi"
    instead = _INSTEAD.get(_SAME.get(name, name))
    text = f"module 'sunzi' has no attribute '{name}'"
    return f"{text}: {instead}" if instead else text
