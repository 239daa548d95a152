    // One thread asks for 128 windows from the block's first on, of each one tap's 32 channels.
    if (tid == 0) {
      const int h0 = first.p * shape.stride_h - shape.pad_h;
      const int w0 = first.q * shape.stride_w - shape.pad_w;
      arrive_and_expect(&full, sizeof(x));
      copy_windows(x, &map, c0, w0, h0, first.n, s * shape.dil_w, r * shape.dil_h, &full);
    }
    wait(&full, tile % 2);
