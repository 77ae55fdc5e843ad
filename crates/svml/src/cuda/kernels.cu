// The kernels of the exact backend, compiled by NVRTC for the card that is there.
//
// Matrices are stored by columns: entry (i, j) is a[i + j * stride]. Rows of points are stored one after the other, as
// on the host: coordinate k of row i is z[i * d + k]. All parameters have 64 bits. Every value is written by one thread,
// which adds in a fixed order: the same bits from run to run.

typedef long long whole;

// The column and the first row of a thread, for kernels that are launched with a block of threads for each 256 rows and,
// behind each other, the columns. There may be more columns than a grid has room for: each block then does several.
#define ROW ((whole)blockIdx.x * blockDim.x + threadIdx.x)
#define EACH_COLUMN(j, cols) for (whole j = blockIdx.y; j < (cols); j += gridDim.y)

// out[i] = rows of x at `places`. One thread for each value: d side by side, rows behind each other.
extern "C" __global__ void gather_rows(double *out, const double *x, const whole *places, whole count, whole d)
{
    whole k = ROW;
    if (k >= d)
        return;
    EACH_COLUMN(i, count)
        out[i * d + k] = x[places[i] * d + k];
}

// out[i] = v[places[i]].
extern "C" __global__ void gather_values(double *out, const double *v, const whole *places, whole count)
{
    whole i = ROW;
    if (i < count)
        out[i] = v[places[i]];
}

// out[i] = |z_i|^2.
extern "C" __global__ void squared_norms(double *out, const double *z, whole count, whole d)
{
    whole i = ROW;
    if (i >= count)
        return;
    double sum = 0.0;
    for (whole k = 0; k < d; k++)
        sum = fma(z[i * d + k], z[i * d + k], sum);
    out[i] = sum;
}

// z_ik = l_k x_ik, where one l counts for all k if `single`.
extern "C" __global__ void scale_coordinates(double *z, const double *x, const double *l, whole single, whole count, whole d)
{
    whole k = ROW;
    if (k >= d)
        return;
    double factor = l[single ? 0 : k];
    EACH_COLUMN(i, count)
        z[i * d + k] = factor * x[i * d + k];
}

// [s_i y_i, s_i]: the rows at `places`, or all if there are none, each times its scale and followed by it. // (count, width + 1)
extern "C" __global__ void scale_rows(double *out, const double *y, const whole *places, const double *s, whole count, whole width)
{
    whole k = ROW;
    if (k > width)
        return;
    EACH_COLUMN(i, count)
    {
        whole row = places ? places[i] : i;
        double scale = s ? s[i] : 1.0;
        out[i * (width + 1) + k] = k < width ? scale * y[row * width + k] : scale;
    }
}

// Products -2 z_i z_j become exp(-|z_i - z_j|^2), 1 to the bit for a row and itself.
extern "C" __global__ void gaussian(
    double *k, whole stride, whole rows, whole cols, const double *norms_r, const double *norms_c, const whole *places_r,
    const whole *places_c)
{
    whole i = ROW;
    if (i >= rows)
        return;
    double norm = norms_r[i];
    whole place = places_r ? places_r[i] : -1;
    EACH_COLUMN(j, cols)
    {
        double sq = fmax(k[i + j * stride] + (norm + norms_c[j]), 0.0);
        k[i + j * stride] = (place >= 0 && place == places_c[j]) ? 1.0 : exp(-sq);
    }
}

// What a kernel of differences is wanted for.
#define VALUE 0  // k
#define SLOPE 1  // minus the derivative of k in the squared distance, k / (2 r), 0 where rows coincide
#define TIMES 2  // k r
// Distances up to this are those of rows that coincide, as on the processor.
#define COINCIDING 1e-7

#define SIDE 32
#define EACH 4
#define BROAD 64
#define DEPTH 16

// Rows of points: those at `places`, or all one after the other if there are none, up to `end`.
struct Points
{
    const double *z;
    const whole *places;
    whole end;
};

__device__ static double coordinate(Points points, whole at, whole k, whole d)
{
    if (at >= points.end || k >= d)
        return 0.0;
    return points.z[(points.places ? points.places[at] : at) * d + k];
}

// Kernels are exp(-r), with r by `kind` the squared distance, the distance, or the sum of absolute differences.
#define SQUARED 0
#define DISTANCE 1
#define ABSOLUTE 2

// Sums over coordinates of squared or of absolute differences, of 64 x 64 pairs of rows of a and b from these on, by a block of
// 256 threads: sums[s][t] is that of the rows y + 16 s of a and x + 16 t of b, where x = thread % 16 and y = thread / 16.
__device__ static void sum_differences(double sums[4][4], Points a, whole first, Points b, whole start, whole d, whole kind)
{
    __shared__ double left[DEPTH][BROAD + 1];
    __shared__ double right[DEPTH][BROAD + 1];
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 4; t++)
            sums[s][t] = 0.0;
    for (whole from = 0; from < d; from += DEPTH)
    {
        for (int at = threadIdx.x; at < BROAD * DEPTH; at += 256)
        {
            int k = at % DEPTH, point = at / DEPTH;
            left[k][point] = coordinate(a, first + point, from + k, d);
            right[k][point] = coordinate(b, start + point, from + k, d);
        }
        __syncthreads();
        whole depth = d - from < DEPTH ? d - from : DEPTH;
        for (int k = 0; k < depth; k++)
        {
            double p[4], q[4];
            for (int s = 0; s < 4; s++)
            {
                p[s] = left[k][y + 16 * s];
                q[s] = right[k][x + 16 * s];
            }
            for (int s = 0; s < 4; s++)
                for (int t = 0; t < 4; t++)
                {
                    double difference = p[s] - q[t];
                    sums[s][t] = kind == ABSOLUTE ? sums[s][t] + fabs(difference) : fma(difference, difference, sums[s][t]);
                }
        }
        __syncthreads();
    }
}

// A tile of a kernel by the differences of rows. Blocks of 256 threads for 64 x 64 entries.
extern "C" __global__ void kernel_tile(
    double *out, whole stride, const double *a, const double *b, whole rows, whole cols, whole d, whole kind, whole what)
{
    Points row_points = {a, 0, rows}, col_points = {b, 0, cols};
    whole first_row = (whole)blockIdx.x * BROAD, tiles = (cols + BROAD - 1) / BROAD;
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    for (whole tile = blockIdx.y; tile < tiles; tile += gridDim.y)
    {
        double sums[4][4];
        // Threads side by side have rows side by side.
        sum_differences(sums, col_points, tile * BROAD, row_points, first_row, d, kind);
        for (int s = 0; s < 4; s++)
            for (int t = 0; t < 4; t++)
            {
                whole i = first_row + x + 16 * t, j = tile * BROAD + y + 16 * s;
                if (i >= rows || j >= cols)
                    continue;
                double r = kind == DISTANCE ? sqrt(sums[s][t]) : sums[s][t];
                double k = exp(-r);
                if (what == SLOPE)
                    k = k > 0.0 && r > COINCIDING ? k / (2.0 * r) : 0.0;
                if (what == TIMES)
                    k = k > 0.0 ? k * r : 0.0;
                out[i + j * stride] = k;
            }
    }
}

// out_ik += sum_j w_ij |a_ik - b_jk|, or with the sign of the difference. A thread for each i and k.
extern "C" __global__ void add_differences(
    double *out, const double *w, whole stride, const double *a, const double *b, whole rows, whole cols, whole d, whole sign)
{
    whole i = ROW;
    if (i >= rows)
        return;
    EACH_COLUMN(k, d)
    {
        double own = a[i * d + k], sum = 0.0;
        for (whole j = 0; j < cols; j++)
        {
            double difference = own - b[j * d + k];
            double factor = sign ? (double)((difference > 0.0) - (difference < 0.0)) : fabs(difference);
            sum = fma(w[i + j * stride], factor, sum);
        }
        out[i * d + k] += sum;
    }
}

// a_ij <- a_ij b_ij.
extern "C" __global__ void multiply_each(double *a, whole stride_a, const double *b, whole stride_b, whole rows, whole cols)
{
    whole i = ROW;
    if (i >= rows)
        return;
    EACH_COLUMN(j, cols)
        a[i + j * stride_a] *= b[i + j * stride_b];
}

// out_ij = left_i a_ij right_j, where a missing side is all ones.
extern "C" __global__ void scale_sides(
    double *out, whole stride_out, const double *a, whole stride, const double *left, const double *right, whole rows, whole cols)
{
    whole i = ROW;
    if (i >= rows)
        return;
    double l = left ? left[i] : 1.0;
    EACH_COLUMN(j, cols)
        out[i + j * stride_out] = l * a[i + j * stride] * (right ? right[j] : 1.0);
}

// a_ii += v_i.
extern "C" __global__ void add_to_diagonal(double *a, whole stride, const double *v, whole count)
{
    whole i = ROW;
    if (i < count)
        a[i + i * stride] += v[i];
}

// a_ii.
extern "C" __global__ void diagonal(double *out, const double *a, whole stride, whole count)
{
    whole i = ROW;
    if (i < count)
        out[i] = a[i + i * stride];
}

// The upper triangle becomes the mirror image of the lower one. Blocks of 32 x 8 threads for 32 x 32 entries; those above the
// diagonal do nothing.
extern "C" __global__ void mirror(double *a, whole stride, whole count)
{
    __shared__ double tile[SIDE][SIDE + 1];
    whole tiles = (count + SIDE - 1) / SIDE;
    whole row = blockIdx.x;
    int x = threadIdx.x, y = threadIdx.y;
    for (whole col = blockIdx.y; col < tiles && col <= row; col += gridDim.y)
    {
        for (int e = y; e < SIDE; e += SIDE / EACH)
        {
            whole i = row * SIDE + x, j = col * SIDE + e;
            if (i < count && j < count)
                tile[e][x] = a[i + j * stride];
        }
        __syncthreads();
        for (int e = y; e < SIDE; e += SIDE / EACH)
        {
            // Entry (j, i) of the other side: x runs along its rows.
            whole i = row * SIDE + e, j = col * SIDE + x;
            if (i < count && j < i)
                a[j + i * stride] = tile[x][e];
        }
        __syncthreads();
    }
}

// a_ij -= u_i u_j / divisor.
extern "C" __global__ void subtract_outer(double *a, whole stride, const double *u, double divisor, whole rows, whole cols)
{
    whole i = ROW;
    if (i >= rows)
        return;
    EACH_COLUMN(j, cols)
        a[i + j * stride] -= u[i] * u[j] / divisor;
}

// out_j = sum_i w_i a_ij^2, or without w. A block of threads for each column, which add in a fixed tree.
extern "C" __global__ void squared_columns(double *out, const double *a, whole stride, const double *w, whole rows, whole cols)
{
    __shared__ double sums[256];
    EACH_COLUMN(j, cols)
    {
        double sum = 0.0;
        for (whole i = threadIdx.x; i < rows; i += 256)
        {
            double value = a[i + j * stride];
            sum = fma(w ? w[i] * value : value, value, sum);
        }
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2)
        {
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            out[j] = sums[0];
        __syncthreads();
    }
}

// out = a.
extern "C" __global__ void copy_matrix(double *out, whole stride_out, const double *a, whole stride, whole rows, whole cols)
{
    whole i = ROW;
    if (i >= rows)
        return;
    EACH_COLUMN(j, cols)
        out[i + j * stride_out] = a[i + j * stride];
}

// Columns of the unit matrix: 1 in row `places[j] - first`, 0 elsewhere; without places in row j.
extern "C" __global__ void unit_columns(double *out, whole stride, const whole *places, whole first, whole rows, whole cols)
{
    whole i = ROW;
    if (i >= rows)
        return;
    EACH_COLUMN(j, cols)
        out[i + j * stride] = i == (places ? places[j] - first : j) ? 1.0 : 0.0;
}

// out_ik = scale_i (factor sums_i x_ik - f_ik) for rows [f_i, sums_i] of f; without scale it is 1. // (count, width)
extern "C" __global__ void weighted_minus(
    double *out, const double *f, const double *x, const double *scale, double factor, whole count, whole width)
{
    whole k = ROW;
    if (k >= width)
        return;
    EACH_COLUMN(i, count)
    {
        double sum = factor * f[i * (width + 1) + width];
        out[i * width + k] = (scale ? scale[i] : 1.0) * (sum * x[i * width + k] - f[i * (width + 1) + k]);
    }
}

// out_k = sum_i w_i a_ik b_ik, for rows one after the other; without w it is 1. A block of threads for each k, which add in
// a fixed tree.
extern "C" __global__ void products_by_coordinate(
    double *out, const double *a, const double *b, const double *w, whole count, whole d)
{
    __shared__ double sums[256];
    EACH_COLUMN(k, d)
    {
        double sum = 0.0;
        for (whole i = threadIdx.x; i < count; i += 256)
            sum = fma(w ? w[i] * a[i * d + k] : a[i * d + k], b[i * d + k], sum);
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2)
        {
            if (threadIdx.x < half)
                sums[threadIdx.x] += sums[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            out[k] = sums[0];
        __syncthreads();
    }
}

// v_i <- v_i s_i.
extern "C" __global__ void multiply_values(double *v, const double *s, whole count)
{
    whole i = ROW;
    if (i < count)
        v[i] *= s[i];
}

// The same numbers with fewer digits.
extern "C" __global__ void to_single(float *out, whole stride_out, const double *a, whole stride, whole rows, whole cols)
{
    whole i = ROW;
    if (i >= rows)
        return;
    EACH_COLUMN(j, cols)
        out[i + j * stride_out] = (float)a[i + j * stride];
}

// Inverses of the triangles of `width` rows along the diagonal of a lower triangular matrix, each stored transposed: entry
// (i, j) of that of block b is out[b * width * width + j + i * width]. A block of threads for each, a thread for each column.
extern "C" __global__ void invert_triangles(double *out, const double *l, whole stride, whole count, whole width)
{
    whole first = (whole)blockIdx.x * width;
    whole rows = count - first < width ? count - first : width;
    whole j = threadIdx.x;
    if (j >= rows)
        return;
    const double *block = l + first + first * stride;
    double *inverse = out + (whole)blockIdx.x * width * width + j;
    // Threads that run together read the same entries of l: they begin with the same row.
    whole start = j & ~31;
    for (whole i = 0; i < rows; i++)
    {
        double sum = i == j ? 1.0 : 0.0;
        for (whole k = start; k < i; k++)
            sum = fma(-block[i + k * stride], inverse[k * width], sum);
        inverse[i * width] = sum / block[i + i * stride];
    }
}

// Products of the kernel with a vector.

// totals_s += sum over a tile of 64 columns from `start` on of v_j k(a_i, b_j), for the four rows i of a thread.
__device__ static void add_tile(
    double totals[4], Points a, whole first, Points b, whole start, const double *v, whole d, whole kind)
{
    double sums[4][4];
    sum_differences(sums, a, first, b, start, d, kind);
    for (int t = 0; t < 4; t++)
    {
        whole col = start + (threadIdx.x & 15) + 16 * t;
        double factor = col < b.end ? v[col] : 0.0;
        for (int s = 0; s < 4; s++)
            totals[s] = fma(factor, exp(-(kind == DISTANCE ? sqrt(sums[s][t]) : sums[s][t])), totals[s]);
    }
}

// Adds up what the 16 threads of a row have, and writes it to out[row].
__device__ static void write_totals(double *out, const double totals[4], whole first, whole end)
{
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    for (int s = 0; s < 4; s++)
    {
        double total = totals[s];
        for (int step = 8; step > 0; step >>= 1)
            total += __shfl_down_sync(0xffffffffu, total, step, 16);
        whole row = first + y + 16 * s;
        if (x == 0 && row < end)
            out[row] = total;
    }
}

// partial[p * rows + i] = sum over the tiles p of columns of v_j k(a_i, b_j). A block has 64 rows and, one after the other,
// `each` tiles of 64 columns.
extern "C" __global__ void kernel_product(
    double *partial, const double *a, const double *b, const double *v, whole rows, whole cols, whole d, whole kind, whole each)
{
    Points left = {a, 0, rows}, right = {b, 0, cols};
    whole first = (whole)blockIdx.x * BROAD, tiles = (cols + BROAD - 1) / BROAD;
    whole tile = (whole)blockIdx.y * each, end = tile + each < tiles ? tile + each : tiles;
    double totals[4] = {0.0, 0.0, 0.0, 0.0};
    for (; tile < end; tile++)
        add_tile(totals, left, first, right, tile * BROAD, v, d, kind);
    write_totals(partial + (whole)blockIdx.y * rows, totals, first, rows);
}

// Several products at a time: out_i = sum_j v_j k(z_rows(i), z_cols(j)), where the rows and columns of all products stand one after
// the other. A block has at most 64 rows of one product; `tiles` has their first and their end, and those of its columns.
extern "C" __global__ void products_of_each(
    double *out, const double *z, const whole *rows, const whole *cols, const double *v, const whole *tiles, whole d, whole kind)
{
    const whole *tile = tiles + (whole)blockIdx.x * 4;
    Points left = {z, rows, tile[1]}, right = {z, cols, tile[3]};
    double totals[4] = {0.0, 0.0, 0.0, 0.0};
    for (whole start = tile[2]; start < tile[3]; start += BROAD)
        add_tile(totals, left, tile[0], right, start, v, d, kind);
    write_totals(out, totals, tile[0], tile[1]);
}

// Several matrices K + diag(ridge) of `size` rows, one after the other. The rows of all of them stand one after the other in
// `places`, those of matrix p from begins[p] on; where there are fewer than `size`, the rest is the unit matrix. Only the lower
// triangle is right. Blocks of 256 threads for 64 x 64 entries: tiles side by side, matrices behind each other.
extern "C" __global__ void systems_of_each(
    double *out, const double *z, const whole *places, const double *ridge, const whole *begins, whole count, whole size, whole d,
    whole kind)
{
    whole across = (size + BROAD - 1) / BROAD;
    whole first_row = blockIdx.x % across * BROAD, first_col = blockIdx.x / across * BROAD;
    if (first_col > first_row)
        return;
    int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    for (whole p = blockIdx.y; p < count; p += gridDim.y)
    {
        whole begin = begins[p], end = begins[p + 1];
        Points points = {z, places, end};
        double sums[4][4];
        sum_differences(sums, points, begin + first_col, points, begin + first_row, d, kind);
        for (int s = 0; s < 4; s++)
            for (int t = 0; t < 4; t++)
            {
                whole i = first_row + x + 16 * t, j = first_col + y + 16 * s;
                if (i >= size || j >= size)
                    continue;
                double value = i == j ? 1.0 : 0.0;
                if (begin + i < end && begin + j < end)
                    value = i == j ? 1.0 + ridge[begin + i] : exp(-(kind == DISTANCE ? sqrt(sums[s][t]) : sums[s][t]));
                out[i + (j + p * size) * size] = value;
            }
    }
}

// out[places[k]] = values[k].
extern "C" __global__ void scatter_values(double *out, const double *values, const whole *places, whole count)
{
    whole k = ROW;
    if (k < count)
        out[places[k]] = values[k];
}

// out_i = partial_i + partial_(count + i) + .., in this order.
extern "C" __global__ void add_parts(double *out, const double *partial, whole count, whole parts)
{
    whole i = ROW;
    if (i >= count)
        return;
    double sum = 0.0;
    for (whole p = 0; p < parts; p++)
        sum += partial[p * count + i];
    out[i] = sum;
}

// Solutions with a triangular matrix, block after block of at most 256 rows, for few right-hand sides.

// The product of at most 256 values that 32 threads hold, eight each, with a vector; the first thread has it.
__device__ static double product_of_warp(const double own[8], const double *x, whole count)
{
    int lane = threadIdx.x & 31;
    double sum = 0.0;
    for (int s = 0; s < 8; s++)
        if (lane + 32 * s < count)
            sum = fma(own[s], x[lane + 32 * s], sum);
    for (int step = 16; step > 0; step >>= 1)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

// out = t x for the inverse t of a triangle as `invert_triangles` stores it, or for `turned` its transpose. Eight rows for each
// block of 256 threads, 32 threads for a row.
extern "C" __global__ void solve_triangle(
    double *out, whole stride_out, const double *x, whole stride, const double *t, whole rows, whole cols, whole width, whole turned)
{
    whole i = (whole)blockIdx.x * 8 + (threadIdx.x >> 5);
    int lane = threadIdx.x & 31;
    if (i >= rows)
        return;
    double own[8];
    for (int s = 0; s < 8; s++)
    {
        whole k = lane + 32 * s;
        own[s] = k < rows ? t[turned ? i + k * width : k + i * width] : 0.0;
    }
    for (whole c = 0; c < cols; c++)
    {
        double sum = product_of_warp(own, x + c * stride, rows);
        if (lane == 0)
            out[i + c * stride_out] = sum;
    }
}

// c -= g x for the rows below a triangle: `inner` columns of g, at most 256. 32 rows for each block of 256 threads, eight
// threads for a row; four right-hand sides at a time.
extern "C" __global__ void solve_below(
    double *c, whole stride_c, const double *g, whole stride, const double *x, whole stride_x, whole rows, whole inner, whole cols)
{
    __shared__ double factors[256][4];
    __shared__ double sums[8][32][4];
    int row = threadIdx.x & 31, group = threadIdx.x >> 5;
    whole i = (whole)blockIdx.x * 32 + row;
    for (whole first = 0; first < cols; first += 4)
    {
        __syncthreads();
        if (threadIdx.x < inner)
            for (int col = 0; col < 4; col++)
                factors[threadIdx.x][col] = first + col < cols ? x[threadIdx.x + (first + col) * stride_x] : 0.0;
        __syncthreads();
        double own[4] = {0.0, 0.0, 0.0, 0.0};
        if (i < rows)
#pragma unroll 8
            for (int k = group; k < inner; k += 8)
            {
                double value = g[i + k * stride];
                for (int col = 0; col < 4; col++)
                    own[col] = fma(value, factors[k][col], own[col]);
            }
        for (int col = 0; col < 4; col++)
            sums[group][row][col] = own[col];
        __syncthreads();
        if (group < 4 && first + group < cols && i < rows)
        {
            double sum = 0.0;
            for (int other = 0; other < 8; other++)
                sum += sums[other][row][group];
            c[i + (first + group) * stride_c] -= sum;
        }
    }
}

// c -= g' x for the rows above a triangle: `inner` rows of g, a column of which is for each of `rows`. 32 threads for each.
extern "C" __global__ void solve_above(
    double *c, whole stride_c, const double *g, whole stride, const double *x, whole stride_x, whole rows, whole inner, whole cols)
{
    whole j = (whole)blockIdx.x * 8 + (threadIdx.x >> 5);
    int lane = threadIdx.x & 31;
    if (j >= rows)
        return;
    double own[8];
    for (int s = 0; s < 8; s++)
        own[s] = lane + 32 * s < inner ? g[lane + 32 * s + j * stride] : 0.0;
    for (whole col = 0; col < cols; col++)
    {
        double sum = product_of_warp(own, x + col * stride_x, inner);
        if (lane == 0)
            c[j + col * stride_c] -= sum;
    }
}
