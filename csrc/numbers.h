/* Numbers of several lanes, side by side: for loops that keep them in registers. Where the compiler has no
 * types for that, one lane after the other.
 */
#ifndef DPQ_NUMBERS_H
#define DPQ_NUMBERS_H

#include <stdint.h>
#include <string.h>

#include "vector.h"

#ifdef DPQ_VECTORS
#define DPQ_AT_ONCE 8
typedef double dpq_numbers __attribute__((vector_size(8 * DPQ_AT_ONCE)));
typedef int64_t dpq_truths __attribute__((vector_size(8 * DPQ_AT_ONCE)));
typedef dpq_numbers dpq_stored __attribute__((aligned(8), may_alias)); /* anywhere in an array */
#define DPQ_PICK(truth, a, b) \
    ((dpq_numbers)(((dpq_truths)(a) & (truth)) | ((dpq_truths)(b) & ~(truth))))
#else
#define DPQ_AT_ONCE 1
typedef double dpq_numbers;
typedef int64_t dpq_truths;
typedef double dpq_stored;
#define DPQ_PICK(truth, a, b) ((truth) ? (a) : (b))
#endif

/* One number in all lanes. */
#define DPQ_SAME(x) ((dpq_numbers){0} + (x))

/* Which numbers are negative, as truths: by their sign bits, for which all compilers have vectors. (No
 * function here takes or returns a vector: how is not the same on all machines.) */
#ifdef DPQ_VECTORS
#define DPQ_NEGATIVE(x) ((dpq_truths)(x) >> 63)
#else
#define DPQ_NEGATIVE(x) (-(dpq_truths)((x) < 0.0))
#endif

/* Whether something is true in all lanes. */
static inline int
dpq_all(const dpq_truths *truths)
{
    int64_t each[DPQ_AT_ONCE], all = -1;

    memcpy(each, truths, sizeof each);
    for (size_t i = 0; i < DPQ_AT_ONCE; i++) {
        all &= each[i];
    }
    return all != 0;
}

#endif
