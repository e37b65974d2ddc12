/* SPDX-License-Identifier: MIT */
/** Text in XML 1.0. */
#ifndef XHEAP_BASE_XML_H
#define XHEAP_BASE_XML_H

#include "base/sink.h"

/** Write a text so that it may stand in an element or in an attribute between "". U+FFFD replaces what XML has no way
    to write: bytes that are not UTF-8, and control characters but tab and line feed. */
void xml_text(struct sink *out, const char *text);

/** Write ` name="text"`. */
void xml_attribute(struct sink *out, const char *name, const char *text);

#endif
