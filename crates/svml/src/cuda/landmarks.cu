// The kernels of SVMs on landmarks. Matrices of rows stand row after row: K[i * m + j] is row i against landmark j.
// What belongs to several problems stands problem after problem: f[p * rows + i].
//
// Every sum has an order that depends on the size of the problem alone: threads add their own terms, a block adds its
// threads in a tree, and blocks write what they have to places of their own, which `lm_fold` adds in their order. There are
// no atomic sums.
//
// A block of rows has fewer than 2^32 values, so that places within one are divided as numbers of 32 bits, which is fast.

typedef unsigned char u8;
typedef unsigned short u16;
typedef long long i64;

// Threads of a block in all kernels but `lm_differences`, `lm_absolute` and `lm_compact`.
#define THREADS 256
#define WARPS (THREADS / 32)
#define NUMBERS 7
#define SHARES 40

__device__ __forceinline__ double of_warp(double v) {
    for (int step = 16; step > 0; step >>= 1) v += __shfl_down_sync(0xffffffffu, v, step);
    return v;
}

// The sum over a block of THREADS threads, in thread 0. `shared` has WARPS places.
__device__ __forceinline__ double of_block(double v, double *shared) {
    v = of_warp(v);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = v;
    __syncthreads();
    double sum = 0.0;
    if (threadIdx.x == 0)
        for (int w = 0; w < WARPS; w++) sum += shared[w];
    return sum;
}

// exp(-x) for x >= 0, 0 where the processor's has it.
__device__ __forceinline__ double exp_neg(double x) { return x > 708.0 ? 0.0 : exp(-x); }

// z = x times the diagonal of L; `one` says that there is one number for all columns.
extern "C" __global__ void lm_scale(const double *x, const double *l, double *z, i64 n, i64 d, i64 one) {
    i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at < n * d) z[at] = x[at] * l[one ? 0 : (unsigned)at % (unsigned)d];
}

// Squared norms of rows, one warp for each.
extern "C" __global__ void lm_norms(const double *z, double *norms, i64 n, i64 d) {
    i64 row = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = threadIdx.x & 31;
    double sum = 0.0;
    if (row < n)
        for (i64 k = lane; k < d; k += 32) sum = fma(z[row * d + k], z[row * d + k], sum);
    sum = of_warp(sum);
    if (row < n && lane == 0) norms[row] = sum;
}

// Gaussian kernel from -2 z'p, which `k` holds.
extern "C" __global__ void lm_gaussian(double *k, const double *of_rows, const double *of_points, i64 n, i64 m) {
    i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= n * m) return;
    unsigned row = (unsigned)at / (unsigned)m, point = (unsigned)at - row * (unsigned)m;
    double s = k[at] + (of_rows[row] + of_points[point]);
    k[at] = exp_neg(s > 0.0 ? s : 0.0);
}

// The kernels of differences of coordinates: k = exp(-|z - p|), or with `absolute` exp(-sum |z - p|). A block of 16 x 16
// threads has a tile of 64 x 64, a thread 4 x 4 of it.
#define SIDE 64
#define DEEP 16
extern "C" __global__ void lm_differences(const double *z, const double *p, double *k, i64 n, i64 m, i64 d, i64 absolute) {
    __shared__ double rows[DEEP][SIDE + 1];
    __shared__ double points[DEEP][SIDE + 1];
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    i64 first = (i64)blockIdx.x * SIDE;
    int start = blockIdx.y * SIDE;
    double sum[4][4];
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) sum[a][b] = 0.0;
    for (int from = 0; from < d; from += DEEP) {
        for (int at = threadIdx.x; at < SIDE * DEEP; at += 256) {
            int c = at % DEEP, r = at / DEEP;
            bool column = from + c < d;
            rows[c][r] = column && first + r < n ? z[(first + r) * d + from + c] : 0.0;
            points[c][r] = column && start + r < m ? p[(i64)(start + r) * d + from + c] : 0.0;
        }
        __syncthreads();
        for (int c = 0; c < DEEP; c++) {
            double a[4], b[4];
            for (int s = 0; s < 4; s++) {
                a[s] = rows[c][ty + 16 * s];
                b[s] = points[c][tx + 16 * s];
            }
            if (absolute) {
                for (int s = 0; s < 4; s++)
                    for (int t = 0; t < 4; t++) sum[s][t] += fabs(a[s] - b[t]);
            } else {
                for (int s = 0; s < 4; s++)
                    for (int t = 0; t < 4; t++) {
                        double difference = a[s] - b[t];
                        sum[s][t] = fma(difference, difference, sum[s][t]);
                    }
            }
        }
        __syncthreads();
    }
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 4; t++) {
            i64 row = first + ty + 16 * s;
            int column = start + tx + 16 * t;
            if (row < n && column < m) k[row * m + column] = exp_neg(absolute ? sum[s][t] : sqrt(sum[s][t]));
        }
}

// f[p * stride + i] = K[i, :] theta_p + bias_p for up to 8 problems, one warp for a row. theta[p * m + j].
extern "C" __global__ void lm_outputs(const double *k, const double *theta, const double *bias, double *f, i64 n, i64 m, i64 problems, i64 stride) {
    i64 row = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = threadIdx.x & 31;
    double sum[8];
    for (int p = 0; p < 8; p++) sum[p] = 0.0;
    if (row < n)
        for (i64 j = lane; j < m; j += 32) {
            double value = k[row * m + j];
            for (int p = 0; p < 8; p++)
                if (p < problems) sum[p] = fma(value, theta[p * m + j], sum[p]);
        }
    for (int p = 0; p < 8; p++)
        if (p < problems) {
            double total = of_warp(sum[p]);
            if (row < n && lane == 0) f[p * stride + row] = total + bias[p];
        }
}

// f[p * stride + i] += bias[p], where a matrix product has made the rest.
extern "C" __global__ void lm_bias(double *f, const double *bias, i64 n, i64 stride) {
    i64 row = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (row < n) f[blockIdx.y * stride + row] += bias[blockIdx.y];
}

// partial[(chunk * problems + p) * m + j] = sum over the rows of a chunk of a[p * n + i] K[i, j], for up to 8 problems; without
// `a` the rows count once each.
extern "C" __global__ void lm_columns(const double *k, const double *a, double *partial, i64 n, i64 m, i64 problems, i64 chunk) {
    i64 j = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (j >= m) return;
    i64 first = (i64)blockIdx.y * chunk, end = first + chunk < n ? first + chunk : n;
    double sum[8];
    for (int p = 0; p < 8; p++) sum[p] = 0.0;
    for (i64 i = first; i < end; i++) {
        double value = k[i * m + j];
        for (int p = 0; p < 8; p++)
            if (p < problems) sum[p] = fma(value, a ? a[p * n + i] : 1.0, sum[p]);
    }
    for (int p = 0; p < 8; p++)
        if (p < problems) partial[((i64)blockIdx.y * problems + p) * m + j] = sum[p];
}

// out[at] += factor (parts[at] + parts[len + at] + ..), in this order.
extern "C" __global__ void lm_fold(double *out, const double *parts, i64 len, i64 count, double factor) {
    i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= len) return;
    double sum = 0.0;
    for (int c = 0; c < count; c++) sum += parts[c * len + at];
    out[at] = fma(factor, sum, out[at]);
}

// The loss of a margin and its derivative there: 0 sigmoid, 1 logistic, 2 squared hinge.
__device__ __forceinline__ void loss_at(int surrogate, double a, double margin, double *value, double *slope) {
    if (surrogate == 2) {
        double slack = 1.0 - margin > 0.0 ? 1.0 - margin : 0.0;
        *value = slack * slack;
        *slope = -2.0 * slack;
        return;
    }
    double e = exp(-fabs(a * margin));
    double small = e / (1.0 + e), large = 1.0 / (1.0 + e);
    if (surrogate == 0) {
        *value = margin > 0.0 ? small : large;
        *slope = -a * small * large;
    } else {
        double hinge = -a * margin > 0.0 ? -a * margin : 0.0;
        *value = (log1p(e) + hinge) / a;
        *slope = margin > 0.0 ? -small : -large;
    }
}

// What is known of a problem among rows of one class: FACTS numbers.
//   FLAGS    where the flags of these rows start
//   SIGN     1 if the rows are of the positive class, else -1
//   FOLDS    where the problem's two lists of folds start: first those trained on, then those validated with
//   GUESSED  whether rows are inside of the margin by the guess
//   FRESH    whether no row was inside of the margin before
#define FACTS 5
#define FLAGS 0
#define SIGN 1
#define FOLDS 2
#define GUESSED 3
#define FRESH 4

// Step: from the outputs f of rows of one class what each row adds. `on_gradient` and `on_valid` receive the factors of
// [k, 1] in the two vectors, `change` 1 for a row that has entered S since `flags` was written, 2 for one that has left.
// partial[(block * problems + p) * NUMBERS + q]: hinge, weight, loss, wrong in training and in validation, and the sums of the
// two factors. With `only_flags` nothing but `flags` is written.
extern "C" __global__ void lm_step(
    const double *f, const double *guess, const double *weight, const u16 *fold, const double *facts,
    const u8 *folds, i64 fold_count, u8 *flags, double *on_gradient, double *on_valid, u8 *change, double *partial,
    i64 n, i64 flags_first, i64 validates, i64 surrogate, double steepness, double total, i64 only_flags) {
    __shared__ double shared[WARPS];
    i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    int p = blockIdx.y;
    const double *fact = facts + p * FACTS;
    const u8 *trains = folds + (i64)fact[FOLDS];
    double sums[NUMBERS];
    for (int q = 0; q < NUMBERS; q++) sums[q] = 0.0;
    if (i < n) {
        bool train = trains[fold[i]] != 0;
        bool valid = validates && trains[fold_count + fold[i]] != 0;
        double y = fact[SIGN], w = weight[i], h = f[p * n + i];
        double decides = fact[GUESSED] != 0.0 && guess ? guess[p * n + i] : h;
        bool inside = train && y * decides < 1.0;
        u8 *flag = flags + (i64)fact[FLAGS] + flags_first + i;
        if (!only_flags) {
            bool before = fact[FRESH] == 0.0 && *flag != 0;
            change[p * n + i] = inside == before ? 0 : inside ? 1 : 2;
            double a = 0.0, g = 0.0;
            double wrong = (h > 0.0) == (y > 0.0) ? 0.0 : w;
            if (train) sums[3] = wrong;
            if (inside) {
                double slack = 1.0 - y * h;
                sums[0] = 0.5 * w * slack * slack;
                sums[1] = w;
                a = -w * y * slack;
            }
            if (valid) {
                double value, slope;
                loss_at(surrogate, steepness, y * h, &value, &slope);
                sums[2] = w / total * value;
                sums[4] = wrong;
                g = w / total * y * slope;
            }
            on_gradient[p * n + i] = a;
            if (validates) on_valid[p * n + i] = g;
            sums[5] = a;
            sums[6] = g;
        }
        *flag = inside;
    }
    if (only_flags) return;
    for (int q = 0; q < NUMBERS; q++) {
        double sum = of_block(sums[q], shared);
        if (threadIdx.x == 0) partial[((i64)blockIdx.x * gridDim.y + p) * NUMBERS + q] = sum;
    }
}

// For each problem the rows that have entered, then those that have left, each in ascending order:
// list[p * n ..], and how many of each: counts[2 * p], counts[2 * p + 1]. One block of 1024 threads for a problem.
extern "C" __global__ void lm_compact(const u8 *change, int *list, int *counts, i64 n) {
    __shared__ int of_warps[32];
    __shared__ int taken;
    int p = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int start = 0;
    for (int code = 1; code <= 2; code++) {
        int first = start;
        for (i64 from = 0; from < n; from += 1024) {
            i64 i = from + threadIdx.x;
            bool is = i < n && change[p * n + i] == code;
            unsigned votes = __ballot_sync(0xffffffffu, is);
            if (lane == 0) of_warps[warp] = __popc(votes);
            __syncthreads();
            if (threadIdx.x == 0) {
                int sum = 0;
                for (int w = 0; w < 32; w++) {
                    int count = of_warps[w];
                    of_warps[w] = sum;
                    sum += count;
                }
                taken = sum;
            }
            __syncthreads();
            if (is) list[p * n + start + of_warps[warp] + __popc(votes & ((1u << lane) - 1u))] = (int)i;
            start += taken;
            __syncthreads();
        }
        if (threadIdx.x == 0) counts[2 * p + code - 1] = start - first;
    }
}

// out[at * len ..] = sqrt(w) [k, 1] of some rows, at the columns of two classes: from a0 on l0 of them, from a1 on l1.
extern "C" __global__ void lm_gather(const double *k, const double *weight, const int *list, double *out, i64 m, i64 a0, i64 l0, i64 a1, i64 l1) {
    i64 row = list[blockIdx.x], len = l0 + l1 + 1;
    double factor = sqrt(weight[row]);
    for (i64 t = threadIdx.x; t < len; t += THREADS) {
        double value = t + 1 == len ? 1.0 : k[row * m + (t < l0 ? a0 + t : a1 + t - l0)];
        out[(i64)blockIdx.x * len + t] = factor * value;
    }
}

// The upper triangle of a symmetric matrix, row after row.
extern "C" __global__ void lm_pack(const double *h, double *triangle, i64 len) {
    i64 row = blockIdx.x, start = row * len - row * (row - 1) / 2;
    for (i64 j = row + threadIdx.x; j < len; j += THREADS) triangle[start + j - row] = h[row * len + j];
}

// The trace of H = K_mm + cost h, or of I + cost h: in both the first is one but for the bias. One block of threads.
extern "C" __global__ void lm_trace(const double *h, i64 len, double cost, double *trace) {
    __shared__ double shared[WARPS];
    double sum = 0.0;
    for (i64 i = threadIdx.x; i < len; i += THREADS) sum += h[i * len + i];
    sum = of_block(sum, shared);
    if (threadIdx.x == 0) *trace = (double)(len - 1) + cost * sum;
}

// The lower triangle of K_mm + cost h, with a ridge of jitter times the trace: K_mm between the landmarks of two classes, from
// a0 on l0 of them and from a1 on the others; the unit matrix where there is no k. The last row is that of the bias.
extern "C" __global__ void lm_system(
    double *out, const double *h, const double *k, i64 len, i64 m, i64 a0, i64 l0, i64 a1, double cost, double jitter,
    const double *trace) {
    i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= len) return;
    i64 row = i < l0 ? a0 + i : a1 + i - l0;
    for (i64 j = blockIdx.y; j <= i; j += gridDim.y) {
        double value = 0.0;
        if (i + 1 < len) value = k ? k[(j < l0 ? a0 + j : a1 + j - l0) * m + row] : i == j ? 1.0 : 0.0;
        value += cost * h[i + j * len];
        if (i == j) value += jitter * (*trace > 1.0 ? *trace : 1.0);
        out[i + j * len] = value;
    }
}

// Shares: partial[(block * problems + p) * SHARES + s], the hinge loss at 1/2, 1/4, .. of the way from outputs `from` to `to`.
extern "C" __global__ void lm_shares(
    const double *from, const double *to, const double *weight, const u16 *fold, const double *facts,
    const u8 *folds, double *partial, i64 n) {
    __shared__ double shared[WARPS];
    i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    int p = blockIdx.y;
    const double *fact = facts + p * FACTS;
    bool counts = i < n && folds[(i64)fact[FOLDS] + fold[i < n ? i : 0]] != 0;
    double old = counts ? from[p * n + i] : 0.0, way = counts ? to[p * n + i] - old : 0.0;
    double w = counts ? 0.5 * weight[i] : 0.0, share = 0.5;
    for (int s = 0; s < SHARES; s++) {
        double slack = 1.0 - fact[SIGN] * (old + share * way);
        double sum = of_block(slack > 0.0 ? w * slack * slack : 0.0, shared);
        if (threadIdx.x == 0) partial[((i64)blockIdx.x * gridDim.y + p) * SHARES + s] = sum;
        share *= 0.5;
    }
}

// Gradient: from f and q = k'u + t the factors of alpha and of u in d loss / d K: on[p * n + i] and on[(problems + p) * n + i];
// partial[block * problems + p] is the part of d loss / d log C.
extern "C" __global__ void lm_weigh(
    const double *f, const double *q, const double *weight, const u16 *fold, const double *facts,
    const u8 *folds, i64 fold_count, double *on, double *partial, i64 n, i64 surrogate, double steepness, double total, double cost) {
    __shared__ double shared[WARPS];
    i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    int p = blockIdx.y, problems = gridDim.y;
    double d_log_cost = 0.0;
    if (i < n) {
        const double *fact = facts + p * FACTS;
        const u8 *trains = folds + (i64)fact[FOLDS];
        bool train = trains[fold[i]] != 0, valid = trains[fold_count + fold[i]] != 0;
        double y = fact[SIGN], h = f[p * n + i], on_alpha = 0.0, on_u = 0.0;
        if (valid) {
            double value, slope;
            loss_at(surrogate, steepness, y * h, &value, &slope);
            on_alpha = weight[i] / total * y * slope;
        }
        if (train && y * h < 1.0) {
            double c = cost * weight[i], r = h - y, of_u = q[p * n + i];
            on_alpha -= c * of_u;
            on_u = -c * r;
            d_log_cost = -c * r * of_u;
        }
        on[p * n + i] = on_alpha;
        on[(problems + p) * n + i] = on_u;
    }
    double sum = of_block(d_log_cost, shared);
    if (threadIdx.x == 0) partial[(i64)blockIdx.x * problems + p] = sum;
}

// w = w o K': 0: w k; 1: w k / (2 r), the exponential kernel; 2: w k r, for one width.
extern "C" __global__ void lm_times(double *w, const double *k, i64 len, i64 kind) {
    i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at >= len) return;
    double value = k[at], factor = value;
    if (kind != 0) {
        double r = -log(value);
        if (kind == 1) factor = value > 0.0 && r > 1e-7 ? value / (2.0 * r) : 0.0;
        else factor = value > 0.0 ? value * r : 0.0;
    }
    w[at] *= factor;
}

// sums[i] = sum_j t[i * m + j], one warp for a row.
extern "C" __global__ void lm_row_sums(const double *t, double *sums, i64 n, i64 m) {
    i64 row = (i64)blockIdx.x * WARPS + (threadIdx.x >> 5);
    int lane = threadIdx.x & 31;
    double sum = 0.0;
    if (row < n)
        for (i64 j = lane; j < m; j += 32) sum += t[row * m + j];
    sum = of_warp(sum);
    if (row < n && lane == 0) sums[row] = sum;
}

// partial[block] = the sum of the values of a block of 16 THREADS.
extern "C" __global__ void lm_total(const double *values, double *partial, i64 len) {
    __shared__ double shared[WARPS];
    i64 first = (i64)blockIdx.x * 16 * THREADS + threadIdx.x;
    double sum = 0.0;
    for (int s = 0; s < 16; s++)
        if (first + s * THREADS < len) sum += values[first + s * THREADS];
    sum = of_block(sum, shared);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// partial[chunk * d + c] = sum over the rows of a chunk of x_c (row_sum x_c - 2 tz_c).
extern "C" __global__ void lm_diagonal(const double *x, const double *tz, const double *row_sums, double *partial, i64 n, i64 d, i64 chunk) {
    i64 c = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (c >= d) return;
    i64 first = (i64)blockIdx.y * chunk, end = first + chunk < n ? first + chunk : n;
    double sum = 0.0;
    for (i64 i = first; i < end; i++) {
        double value = x[i * d + c];
        sum = fma(value, row_sums[i] * value - 2.0 * tz[i * d + c], sum);
    }
    partial[(i64)blockIdx.y * d + c] = sum;
}

// tz = row_sum x / 2 - tz.
extern "C" __global__ void lm_half(const double *x, double *tz, const double *row_sums, i64 n, i64 d) {
    i64 at = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (at < n * d) tz[at] = 0.5 * row_sums[(unsigned)at / (unsigned)d] * x[at] - tz[at];
}

// partial[tile * d + c] = sum over 64 rows and all landmarks of t_ij |x_ic - z_jc|, for 16 columns c. A thread of 16 x 16 has
// 4 x 4 of each tile of t.
extern "C" __global__ void lm_absolute(const double *t, const double *x, const double *z, double *partial, i64 n, i64 m, i64 d) {
    __shared__ double rows[DEEP][SIDE + 1];
    __shared__ double points[DEEP][SIDE + 1];
    __shared__ double shared[WARPS];
    int tx = threadIdx.x & 15, ty = threadIdx.x >> 4;
    i64 first = (i64)blockIdx.x * SIDE;
    int from = blockIdx.y * DEEP;
    double sum[DEEP];
    for (int c = 0; c < DEEP; c++) sum[c] = 0.0;
    for (int at = threadIdx.x; at < SIDE * DEEP; at += 256) {
        int c = at % DEEP, r = at / DEEP;
        rows[c][r] = from + c < d && first + r < n ? x[(first + r) * d + from + c] : 0.0;
    }
    for (int start = 0; start < m; start += SIDE) {
        __syncthreads();
        for (int at = threadIdx.x; at < SIDE * DEEP; at += 256) {
            int c = at % DEEP, r = at / DEEP;
            points[c][r] = from + c < d && start + r < m ? z[(i64)(start + r) * d + from + c] : 0.0;
        }
        __syncthreads();
        double w[4][4];
        for (int s = 0; s < 4; s++)
            for (int u = 0; u < 4; u++) {
                i64 row = first + ty + 16 * s;
                int column = start + tx + 16 * u;
                w[s][u] = row < n && column < m ? t[row * m + column] : 0.0;
            }
#pragma unroll
        for (int c = 0; c < DEEP; c++) {
            double a[4], b[4];
            for (int s = 0; s < 4; s++) {
                a[s] = rows[c][ty + 16 * s];
                b[s] = points[c][tx + 16 * s];
            }
            for (int s = 0; s < 4; s++)
                for (int u = 0; u < 4; u++) sum[c] = fma(w[s][u], fabs(a[s] - b[u]), sum[c]);
        }
    }
#pragma unroll
    for (int c = 0; c < DEEP; c++) {
        double total = of_block(sum[c], shared);
        if (threadIdx.x == 0 && from + c < d) partial[(i64)blockIdx.x * d + from + c] = total;
    }
}
