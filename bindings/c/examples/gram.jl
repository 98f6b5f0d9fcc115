# The C library from Julia by ccall: the Gram matrix of a matrix of BigFloat, beside Julia's own product.
#
#   SUNZI_LIBRARY=/usr/local/lib/libsunzi.so julia gram.jl
#
# How a BigFloat lies in memory differs between versions of Julia. So arrays of mpfr_t are made here, and numbers go in
# and out through mpfr_set, which takes a Ref{BigFloat} in every version.

const library = get(ENV, "SUNZI_LIBRARY", "libsunzi")
const mpfr = :libmpfr

# The structure mpfr_t.
struct Mpfr
    precision::Clong
    sign::Cint
    exponent::Clong
    limbs::Ptr{UInt64}
end

# The structure sunzi_matrix.
struct SunziMatrix
    format::Int32
    layout::Int32
    rows::Int64
    cols::Int64
    ld::Int64
    entries::Ptr{Cvoid}
    limbs::Ptr{UInt64}
    precision_bits::Int64
end

const SUNZI_MPFR, SUNZI_COL_MAJOR = Int32(1), Int32(102)
const SUNZI_LOWER, SUNZI_TRANS = Int32(122), Int32(112)
const NEAREST = Cint(0)

# An array of mpfr_t, column-major as Julia's own.
function new_array(rows, cols, bits)
    array = Matrix{Mpfr}(undef, rows, cols)
    for at in eachindex(array)
        ccall((:mpfr_init2, mpfr), Cvoid, (Ptr{Mpfr}, Clong), pointer(array, at), bits)
        ccall((:mpfr_set_zero, mpfr), Cvoid, (Ptr{Mpfr}, Cint), pointer(array, at), 1)
    end
    array
end

function free_array(array)
    foreach(at -> ccall((:mpfr_clear, mpfr), Cvoid, (Ptr{Mpfr},), pointer(array, at)), eachindex(array))
end

function store(array, numbers)
    for at in eachindex(array)
        ccall((:mpfr_set, mpfr), Cint, (Ptr{Mpfr}, Ref{BigFloat}, Cint), pointer(array, at), numbers[at], NEAREST)
    end
end

function load(array)
    map(eachindex(array)) do at
        number = BigFloat()
        ccall((:mpfr_set, mpfr), Cint, (Ref{BigFloat}, Ptr{Mpfr}, Cint), number, pointer(array, at), NEAREST)
        number
    end
end

function describe(array)
    rows, cols = size(array)
    SunziMatrix(SUNZI_MPFR, SUNZI_COL_MAJOR, rows, cols, max(rows, 1), pointer(array), C_NULL, 0)
end

function check(ctx, status)
    status == 0 && return
    error(unsafe_string(ccall((:sunzi_last_error, library), Cstring, (Ptr{Cvoid},), ctx)))
end

# The lower triangle of transpose(p) * p.
function gram(ctx, p::Matrix{BigFloat})
    bits, n = precision(BigFloat), size(p, 2)
    a, c = new_array(size(p)..., bits), new_array(n, n, bits)
    store(a, p)
    GC.@preserve a c begin
        status = ccall((:sunzi_syrk, library), Cint,
            (Ptr{Cvoid}, Int32, Int32, Ptr{SunziMatrix}, Ref{SunziMatrix}, Ptr{SunziMatrix}, Ref{SunziMatrix}),
            ctx, SUNZI_LOWER, SUNZI_TRANS, C_NULL, Ref(describe(a)), C_NULL, Ref(describe(c)))
        check(ctx, status)
    end
    q = reshape(load(c), n, n)
    free_array(a)
    free_array(c)
    q
end

function main()
    setprecision(BigFloat, 768)
    slot = Ref{Ptr{Cvoid}}(C_NULL)
    status = ccall((:sunzi_context_new, library), Cint, (Ptr{Cvoid}, Ref{Ptr{Cvoid}}), C_NULL, slot)
    ctx = slot[]
    check(ctx, status)
    p = [2 * rand(BigFloat) - 1 for _ in 1:90, _ in 1:25]
    q, want = gram(ctx, p), transpose(p) * p
    worst = maximum(abs(q[i, j] - want[i, j]) for j in 1:25 for i in j:25)
    worst < big"1e-220" || error("the two products differ by $worst")
    ccall((:sunzi_context_free, library), Cvoid, (Ptr{Cvoid},), ctx)
    println("gram.jl: the products agree to ", Float64(worst))
end

main()
