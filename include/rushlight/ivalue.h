// IValue and what it is made of: values, lists and dicts, types, and the conversions of C++'s
// types.
#pragma once

#include <rushlight/collections.h>
#include <rushlight/type.h>
#include <rushlight/type_of.h>
#include <rushlight/value.h>
