"""A Hilbert system: `H x = b` with `h_ij = 1 / (i + j + 1)`, given as fractions.

The condition number of 100 rows is about 10^150: the digits of the solution are those of the precision less 150. The
right side is made so that every unknown is 1.
"""

from fractions import Fraction

import sunzi

ORDER = 100


def main() -> None:
    hilbert = [[Fraction(1, i + j + 1) for j in range(ORDER)] for i in range(ORDER)]
    right_side = [sum(row) for row in hilbert]

    for precision in (400, 600, 1000, 2000):
        try:
            solution = sunzi.solve(hilbert, right_side, precision=precision)
        except sunzi.NotPositiveDefiniteError as error:
            print(f"{precision} bits: not positive definite at row {error.index}, more bits might do")
            continue
        largest = max(abs(x - 1) for x in solution)
        # Too small for a double: by the lengths of numerator and denominator.
        exponent = largest.numerator.bit_length() - largest.denominator.bit_length()
        print(f"{precision} bits: largest error about 2^{exponent}")
    assert largest < Fraction(1, 10**400)


if __name__ == "__main__":
    main()
