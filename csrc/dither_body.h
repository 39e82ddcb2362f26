/* Ranks among offsets, included by dither.c for each length of vectors (versions.h). */

/* rank[i] = how many of k numbers are below x[i].
 *
 *   x, rank      rooms for a multiple of DPQ_DITHER_PADDING
 */
TARGET static void
NAME(ranks)(size_t k, const int32_t *x, int32_t *rank)
{
    typedef int32_t integers DPQ_VECTOR(LANES);
    typedef integers stored DPQ_STORED;
    enum { LENGTH = sizeof(integers) / sizeof(int32_t), VECTORS = 4 };
    const integers zero = {0};

    for (size_t i = 0; i < k; i += LENGTH * VECTORS) {
        integers of[VECTORS], below[VECTORS];

        for (size_t v = 0; v < VECTORS; v++) {
            of[v] = *(const stored *)(x + i + v * LENGTH);
            below[v] = zero;
        }
        for (size_t j = 0; j < k; j++) {
            integers other = zero + x[j];

            for (size_t v = 0; v < VECTORS; v++) {
                below[v] += COUNTED(other < of[v]);
            }
        }
        for (size_t v = 0; v < VECTORS; v++) {
            *(stored *)(rank + i + v * LENGTH) = below[v];
        }
    }
}
