/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"

#include "base/test.h"

#include <string.h>

/* Published values: RFC 3720, appendix B.4, and the usual check value. */
static void known_values_are_met(void)
{
    uint8_t bytes[48] = {0};
    CHECK(fl_crc32c(0, "", 0) == 0);
    CHECK(fl_crc32c(0, "123456789", 9) == 0xe3069283);
    CHECK(fl_crc32c(0, bytes, 32) == 0x8a9136aa);
    memset(bytes, 0xff, 32);
    CHECK(fl_crc32c(0, bytes, 32) == 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)i;
    CHECK(fl_crc32c(0, bytes, 32) == 0x46dd794e);
    for (int i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    CHECK(fl_crc32c(0, bytes, 32) == 0x113fdb5c);
    const uint8_t command[48] = {
        0x01,        0xc0,        [16] = 0x14, [22] = 0x04,
        [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    CHECK(fl_crc32c(0, command, sizeof command) == 0xd9963a56);
}

/* Bit by bit, as the polynomial says. */
static uint32_t slow_crc(const uint8_t *at, size_t n)
{
    uint32_t crc = ~0u;
    for (; n; n--) {
        crc ^= *at++;
        for (int i = 0; i < 8; i++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

static void parts_and_offsets_do_not_matter(void)
{
    uint8_t bytes[200];
    for (int i = 0; i < 200; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 0; n < 100; n++) {
            const uint32_t whole = fl_crc32c(0, bytes + from, n);
            const uint32_t first = fl_crc32c(0, bytes + from, n / 3);
            CHECK(whole == slow_crc(bytes + from, n));
            CHECK(whole == fl_crc32c(first, bytes + from + n / 3, n - n / 3));
        }
}

const fl_test fl_tests[] = {
    {"crc-32c meets known values", known_values_are_met},
    {"crc-32c of parts is that of the whole", parts_and_offsets_do_not_matter},
    {0},
};
