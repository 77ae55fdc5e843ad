
int svml_transform(const double *x, double *z)
{
    double u[SVML_FEATURES];
    size_t i, k;
    if (!standardise(x, u)) {
        return -1;
    }
    for (i = 0; i < SVML_RANK; i++) {
#if SVML_DIAGONAL
        k = i;
        z[i] = map[k] * u[k];
#else
        double sum = 0.0;
        for (k = 0; k < SVML_FEATURES; k++) {
            sum += map[i * SVML_FEATURES + k] * u[k];
        }
        z[i] = sum;
#endif
    }
    return 0;
}
