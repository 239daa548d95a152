# make -f sweep.mk -jN ROOT=checkout OUT=folder FOLDER/sweep_new
NVCC = nvcc -std=c++17 -O3 -arch=sm_90
HERE := $(dir $(lastword $(MAKEFILE_LIST)))
NEW = 05_fused_bias/fused_bias 08_ordered_stores/ordered_stores 09_tile_sizes/tile_sizes 10_sliding_rows/sliding_rows 11_split_k/split_k 12_tensor_cores/tensor_cores 13_three_products/three_products common/core/add_bias common/core/add_parts common/core/conv_shape common/core/stage
VARIANTS := $(notdir $(basename $(wildcard $(HERE)variants/*.cu)))
NEW_O = $(foreach f,$(NEW),$(OUT)/new/$(notdir $(f)).o) $(foreach f,$(VARIANTS),$(OUT)/var/$(f).o) $(OUT)/new/sweep.o $(OUT)/new/plan_forced.o
# the longest first
$(OUT)/sweep_new: $(NEW_O)
	nvcc -arch=sm_90 -o $@ $^
$(OUT)/new/sweep.o: $(HERE)src/sweep.cu ; @mkdir -p $(@D); $(NVCC) -I$(ROOT) -c -o $@ $<
$(OUT)/new/plan_forced.o: $(HERE)src/plan_forced.cpp ; @mkdir -p $(@D); $(NVCC) -I$(ROOT) -c -o $@ $<
$(OUT)/var/%.o: $(HERE)variants/%.cu ; @mkdir -p $(@D); $(NVCC) -I$(ROOT) -c -o $@ $<
define rule
$(1)/$(notdir $(2)).o: $(wildcard $(3)/$(2).cu $(3)/$(2).cpp) ; @mkdir -p $(1); $(NVCC) -I$(3) -c -o $$@ $$<
endef
$(foreach f,$(NEW),$(eval $(call rule,$(OUT)/new,$(f),$(ROOT))))
