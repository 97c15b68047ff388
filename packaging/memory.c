// memcpy, memmove and memcmp for x86_64, linked into the static binary instead of those of musl, which cost 20 to 30
// cycles for a copy of any length (`rep movs`) and compare byte by byte. Programs over strings take 1.5 times as long
// with them. On aarch64 musl has fast ones.
//
// Every function loads all that it will store next before it stores, so regions may overlap. SSE2 is part of x86_64.

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>

#define UNALIGNED(type, name)                                                                                          \
  typedef struct {                                                                                                     \
    type value;                                                                                                        \
  } __attribute__((packed, may_alias)) name
UNALIGNED(uint16_t, u16);
UNALIGNED(uint32_t, u32);
UNALIGNED(uint64_t, u64);

#define LOAD(type, from) (((const type *)(from))->value)
#define STORE(type, to, what) (((type *)(to))->value = (what))

static inline __m128i load(const unsigned char *from) { return _mm_loadu_si128((const __m128i *)from); }
static inline void store(unsigned char *to, __m128i what) { _mm_storeu_si128((__m128i *)to, what); }

// At most 16 bytes: the first and the last half, which may overlap.
static inline void move_small(unsigned char *to, const unsigned char *from, size_t length) {
#define HALVES(type)                                                                                                   \
  do {                                                                                                                 \
    __typeof__(LOAD(type, from)) first = LOAD(type, from), last = LOAD(type, from + length - sizeof(type));            \
    STORE(type, to, first);                                                                                            \
    STORE(type, to + length - sizeof(type), last);                                                                     \
  } while (0)
  if (length >= 8)
    HALVES(u64);
  else if (length >= 4)
    HALVES(u32);
  else if (length >= 2)
    HALVES(u16);
  else if (length == 1)
    *to = *from;
}

typedef struct {
  __m128i part[4];
} block;

static inline block load_block(const unsigned char *from) {
  return (block){{load(from), load(from + 16), load(from + 32), load(from + 48)}};
}

static inline void store_block(unsigned char *to, block what) {
  store(to, what.part[0]);
  store(to + 16, what.part[1]);
  store(to + 32, what.part[2]);
  store(to + 48, what.part[3]);
}

void *memmove(void *destination, const void *source, size_t length) {
  unsigned char *to = destination;
  const unsigned char *from = source;
  if (length <= 16) {
    move_small(to, from, length);
  } else if (length <= 32) {
    __m128i first = load(from), last = load(from + length - 16);
    store(to, first);
    store(to + length - 16, last);
  } else if (length <= 64) {
    __m128i a = load(from), b = load(from + 16), c = load(from + length - 32), d = load(from + length - 16);
    store(to, a);
    store(to + 16, b);
    store(to + length - 32, c);
    store(to + length - 16, d);
  } else if ((uintptr_t)to - (uintptr_t)from >= length) {
    // The destination begins before the source or behind its end: forwards.
    block last = load_block(from + length - 64);
    for (size_t at = 0; at < length - 64; at += 64) store_block(to + at, load_block(from + at));
    store_block(to + length - 64, last);
  } else {
    block first = load_block(from);
    for (size_t at = length; at > 64; at -= 64) store_block(to + at - 64, load_block(from + at - 64));
    store_block(to, first);
  }
  return destination;
}

void *memcpy(void *restrict destination, const void *restrict source, size_t length) {
  return memmove(destination, source, length);
}

static inline int order(uint64_t left, uint64_t right) { return left < right ? -1 : left > right; }

int memcmp(const void *one, const void *other, size_t length) {
  const unsigned char *left = one, *right = other;
  if (length >= 16) {
    for (size_t at = 0;; at += 16) {
      // The last step may compare some bytes again.
      if (at > length - 16) at = length - 16;
      unsigned same = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(load(left + at), load(right + at)));
      if (same != 0xffff) {
        at += (size_t)__builtin_ctz(~same);
        return (int)left[at] - (int)right[at];
      }
      if (at == length - 16) return 0;
    }
  }
  // Big-endian words order as their bytes do.
  if (length >= 8) {
    uint64_t a = __builtin_bswap64(LOAD(u64, left)), b = __builtin_bswap64(LOAD(u64, right));
    if (a != b) return order(a, b);
    return order(__builtin_bswap64(LOAD(u64, left + length - 8)), __builtin_bswap64(LOAD(u64, right + length - 8)));
  }
  if (length >= 4) {
    uint32_t a = __builtin_bswap32(LOAD(u32, left)), b = __builtin_bswap32(LOAD(u32, right));
    if (a != b) return order(a, b);
    return order(__builtin_bswap32(LOAD(u32, left + length - 4)), __builtin_bswap32(LOAD(u32, right + length - 4)));
  }
  for (size_t at = 0; at < length; at++)
    if (left[at] != right[at]) return (int)left[at] - (int)right[at];
  return 0;
}

int bcmp(const void *one, const void *other, size_t length) { return memcmp(one, other, length); }
