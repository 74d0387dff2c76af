// All of torch::nn.
#pragma once

#include <rushlight/nn/adaptive.h>
#include <rushlight/nn/attention.h>
#include <rushlight/nn/containers.h>
#include <rushlight/nn/functional.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/layers.h>
#include <rushlight/nn/pooling.h>
#include <rushlight/nn/sequence.h>
#include <rushlight/nn/stateless.h>
#include <rushlight/nn/utils.h>
