/* SPDX-License-Identifier: Apache-2.0 */
/* crc.h - CRC-32C (Castagnoli), the checksum of saved files. */
#ifndef FL_BASE_CRC_H
#define FL_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of some bytes and n more; `crc` is that of the bytes before,
 * 0 when there are none. */
uint32_t fl_crc32c(uint32_t crc, const void *bytes, size_t n);

#endif
