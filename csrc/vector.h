/* Wider vectors where the machine has them, chosen when the library is loaded.
 *
 * Put before a function whose loops the compiler vectorizes. Products and sums are not contracted,
 * so every version gives the same bits. DPQ_PORTABLE asks for C11 alone, here and wherever something
 * else is used, for tests.
 */
#ifndef DPQ_VECTOR_H
#define DPQ_VECTOR_H

#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(DPQ_PORTABLE)
#define DPQ_VECTORIZED \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DPQ_VECTORIZED
#endif

/* Whether there are types of vectors, with the operators of numbers: the compiler makes several
 * instructions of one where the machine's vectors are shorter. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DPQ_PORTABLE)
#define DPQ_VECTORS
#endif

/* Ask for memory that will be read soon; any address is allowed. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(DPQ_PORTABLE)
#define DPQ_PREFETCH(address) __builtin_prefetch(address)
#else
#define DPQ_PREFETCH(address) ((void)(address))
#endif

#endif
