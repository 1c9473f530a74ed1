// A 3x3 convolution of 64 to 64 channels, NHWC by HWCF, on an image of 58x58: a subgroup has 14 pixels of a line, a lane eight channels.
@group(0) @binding(0) var<storage, read> X: array<vec4<u64>>;
@group(0) @binding(1) var<storage, read> W: array<vec4<u64>>;
@group(0) @binding(2) var<storage, read_write> Y: array<vec4<u64>>;
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {
  let x0 = w.x * 14u;
  //# for m 0 14
  var cl$(m) = vec4<f32>(0.0); var ch$(m) = vec4<f32>(0.0);
  //# end
  for (var dy = 0u; dy < 3u; dy++) {
    let line = ((w.y + dy) * 58u + x0) * 8u + l;
    //# for m 0 16
    let r$(m) = X[line + $(m*8)u]; var p$(m)_0 = lo(r$(m)); var p$(m)_1 = hi(r$(m));
    //# end
    for (var dx = 0u; dx < 3u; dx++) {
      for (var j = 0u; j < 8u; j++) {
        let at = ((dy * 3u + dx) * 64u + j * 8u) * 8u + l;
        //# for q 0 8
        let w$(q) = W[at + $(q*8)u]; let w$(q)l = lo(w$(q)); let w$(q)h = hi(w$(q));
        //# end
        //# for m 0 14
        //# for q 0 8
        let s$(m)_$(q) = subgroupShuffle(p$(m)_$(q%2)[$(q/2)], j);
        //# end
        cl$(m) = cl$(m) + s$(m)_0 * w0l + s$(m)_1 * w1l + s$(m)_2 * w2l + s$(m)_3 * w3l + s$(m)_4 * w4l + s$(m)_5 * w5l + s$(m)_6 * w6l + s$(m)_7 * w7l;
        ch$(m) = ch$(m) + s$(m)_0 * w0h + s$(m)_1 * w1h + s$(m)_2 * w2h + s$(m)_3 * w3h + s$(m)_4 * w4h + s$(m)_5 * w5h + s$(m)_6 * w6h + s$(m)_7 * w7h;
        //# end
      }
      //# for m 0 15
      p$(m)_0 = p$(m+1)_0; p$(m)_1 = p$(m+1)_1;
      //# end
    }
  }
  //# for m 0 14
  Y[(w.y * 56u + x0 + $(m)u) * 8u + l] = pk(cl$(m), ch$(m));
  //# end
}
