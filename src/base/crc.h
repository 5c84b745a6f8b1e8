/* SPDX-License-Identifier: Apache-2.0 */
/* crc.h - CRC-32C (Castagnoli), the checksum of saved files. */
#ifndef FL_BASE_CRC_H
#define FL_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of a sequence of bytes that is continued by n more. `crc` is the
 * checksum so far; 0 at the start. */
uint32_t fl_crc32c(uint32_t crc, const void *bytes, size_t n);

#endif
