#include "intervals.h"

size_t
dpq_intervals_lattice(size_t segments, const int64_t *first_rank, const int64_t *count,
                      const int64_t *point, int64_t *rank, double *width, int64_t *left)
{
    size_t written = 0;

    for (size_t s = 0; s < segments; s++) {
        for (int64_t i = 0; i < count[s]; i++, point++) {
            /* every interval is written, only those of positive width are kept: no branch */
            rank[written] = first_rank[s] + i;
            width[written] = (double)(point[1] - point[0]);
            left[written] = point[0];
            written += point[1] > point[0];
        }
        point++;
    }
    return written;
}

size_t
dpq_intervals_continuous(size_t segments, const int64_t *first_rank, const int64_t *count,
                         const double *point, int64_t *rank, double *width, double *left)
{
    size_t written = 0;

    for (size_t s = 0; s < segments; s++) {
        for (int64_t i = 0; i < count[s]; i++, point++) {
            rank[written] = first_rank[s] + i;
            width[written] = point[1] - point[0];
            left[written] = point[0];
            written += point[1] > point[0];
        }
        point++;
    }
    return written;
}
