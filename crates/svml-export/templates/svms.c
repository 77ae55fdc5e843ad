
/* The kernel of a member between a row and a support vector: exp(-|L (u - u_j)|^2), exp(-|L (u - u_j)|) or
 * exp(-sum_k |w_k (u_k - u_jk)|). */
static double kernel(const struct member *m, const double *u, const double *z, size_t j)
{
    double sum = 0.0;
    size_t k;
    if (m->rank > 0) {
        const double *point = m->points + j * m->rank;
        for (k = 0; k < m->rank; k++) {
            const double difference = z[k] - point[k];
            sum += difference * difference;
        }
    } else {
        const double *point = m->points + j * SVML_FEATURES;
        for (k = 0; k < SVML_FEATURES; k++) {
            const double difference = m->map[k] * (u[k] - point[k]);
            sum += m->kernel == LAPLACIAN ? fabs(difference) : difference * difference;
        }
    }
    return exp(m->kernel == EXPONENTIAL ? -sqrt(sum) : -sum);
}

/* The outputs of the SVMs of all pairs of classes, (0, 1), (0, 2), .., (1, 2), ..: the mean of the members. */
static void outputs(const double *u, double *h)
{
    double z[SVML_WIDEST] = {0.0};
    size_t n, p, i, j, k, own, slot;
    for (p = 0; p < SVML_PAIRS; p++) {
        h[p] = 0.0;
    }
    for (n = 0; n < SVML_MEMBERS; n++) {
        const struct member *m = &members[n];
        for (i = 0; i < m->rank; i++) {
            z[i] = 0.0;
            for (k = 0; k < SVML_FEATURES; k++) {
                z[i] += m->map[i * SVML_FEATURES + k] * u[k];
            }
        }
        for (p = 0; p < SVML_PAIRS; p++) {
            h[p] += m->weight * m->bias[p];
        }
        j = 0;
        for (own = 0; own < SVML_CLASSES; own++) {
            for (i = 0; i < counts[own]; i++, j++) {
                const double value = m->weight * kernel(m, u, z, j);
                for (slot = 0; slot < SVML_CLASSES - 1; slot++) {
                    const size_t other = slot < own ? slot : slot + 1;
                    const size_t first = own < other ? own : other;
                    const size_t second = own < other ? other : own;
                    p = first * (2 * SVML_CLASSES - first - 1) / 2 + second - first - 1;
                    h[p] += value * m->beta[slot * SVML_SUPPORT + j];
                }
            }
        }
    }
}

int svml_predict(const double *x, double *decision, double *probabilities)
{
    double u[SVML_FEATURES], h[SVML_PAIRS], values[SVML_CLASSES];
    size_t p, i, j, best = 0;
    if (!standardise(x, u)) {
        return -1;
    }
    outputs(u, h);
    if (SVML_CLASSES == 2) {
        values[0] = 0.0;
        values[1] = h[0];
        if (decision != NULL) {
            decision[0] = h[0];
        }
    } else {
        double sums[SVML_CLASSES];
        for (i = 0; i < SVML_CLASSES; i++) {
            values[i] = 0.0;
            sums[i] = 0.0;
        }
        p = 0;
        for (i = 0; i < SVML_CLASSES; i++) {
            for (j = i + 1; j < SVML_CLASSES; j++, p++) {
                values[h[p] > 0.0 ? j : i] += 1.0;
                sums[i] -= h[p];
                sums[j] += h[p];
            }
        }
        for (i = 0; i < SVML_CLASSES; i++) {
            values[i] += sums[i] / (3.0 * (fabs(sums[i]) + 1.0));
            if (decision != NULL) {
                decision[i] = values[i];
            }
        }
    }
    for (i = 1; i < SVML_CLASSES; i++) {
        if (values[i] > values[best]) {
            best = i;
        }
    }
    if (probabilities != NULL) {
        double total = 0.0, top = 0.0;
        for (i = 0; i < SVML_CLASSES; i++) {
            /* NAN in a model that was made before there were probabilities. */
            values[i] /= temperature;
#if SVML_WEIGHTED
            values[i] -= log_weights[i];
#endif
            top = i == 0 || values[i] > top ? values[i] : top;
        }
        for (i = 0; i < SVML_CLASSES; i++) {
            probabilities[i] = exp(values[i] - top);
            total += probabilities[i];
        }
        for (i = 0; i < SVML_CLASSES; i++) {
            probabilities[i] /= total;
        }
#if !SVML_WEIGHTED
        /* Different values may round to the same probability; the predicted class is the most probable one even so. */
        for (i = 0; i < best; i++) {
            if (probabilities[i] >= probabilities[best]) {
                probabilities[best] = nextafter(probabilities[i], 2.0);
            }
        }
#endif
    }
    return (int)best;
}
