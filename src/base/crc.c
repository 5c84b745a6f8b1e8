/* SPDX-License-Identifier: Apache-2.0 */
/* crc.c - CRC-32C by the instruction of the processor, or by a table. On
 * x86-64, SSE 4.2 has the instruction and is detected at run time; on 64-bit
 * ARM a compiler flag must have enabled it. */
#include "base/crc.h"

#include <stdbool.h>
#include <string.h>

/* The checksums of the 16 values of half a byte. */
static const uint32_t half[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
    0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
    0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t add_by_table(uint32_t crc, const uint8_t *at, size_t n)
{
    for (; n; n--) {
        crc ^= *at++;
        crc = crc >> 4 ^ half[crc & 15];
        crc = crc >> 4 ^ half[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
#define CRC_TARGET   __attribute__((target("sse4.2")))
#define CRC_WORD     __builtin_ia32_crc32di
#define CRC_HARDWARE __builtin_cpu_supports("sse4.2")
#elif defined(__ARM_FEATURE_CRC32)
#define CRC_TARGET
#define CRC_WORD     __builtin_aarch64_crc32cx
#define CRC_HARDWARE true
#endif

#ifdef CRC_HARDWARE

/* Add whole words of eight bytes. Returns how many bytes were added; the table
 * does the rest. */
CRC_TARGET static size_t add_words(uint32_t *crc, const uint8_t *at, size_t n)
{
    uint64_t sum = *crc;
    const size_t words = n / 8;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, at + 8 * i, sizeof word);
        sum = CRC_WORD((uint32_t)sum, word);
    }
    *crc = (uint32_t)sum;
    return 8 * words;
}

#endif

uint32_t fl_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    size_t done = 0;
    crc = ~crc;
#ifdef CRC_HARDWARE
    if (CRC_HARDWARE)
        done = add_words(&crc, bytes, n);
#endif
    return ~add_by_table(crc, (const uint8_t *)bytes + done, n - done);
}
