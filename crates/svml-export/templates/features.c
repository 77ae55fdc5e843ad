
/* Fills missing values and standardises. Returns 0 if a value is missing where the model does not fill missing values, or
 * is infinite or beyond 1e300. */
static int standardise(const double *x, double *u)
{
    size_t k;
    for (k = 0; k < SVML_FEATURES; k++) {
        double value = x[k];
#if SVML_FILLS
        if (isnan(value)) {
            value = fill[k];
        }
#endif
        /* No comparison with NAN is true. */
        if (!(fabs(value) <= 1e300)) {
            return 0;
        }
        if (scale[k] > 0.0) {
            value = (value - mean[k]) / scale[k];
            u[k] = value < -1e70 ? -1e70 : value > 1e70 ? 1e70 : value;
        } else {
            /* It was constant in training and is left out. */
            u[k] = 0.0;
        }
    }
    return 1;
}
