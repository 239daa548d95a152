"""Writes variants/*.cu: a stage, edited, under another name; and src/plan_forced.cpp: plan.cpp that CONVLADDER_PLAN overrules."""
import os,sys
root=sys.argv[1]
os.makedirs('variants',exist_ok=True)
for f in os.listdir('variants'): os.remove('variants/'+f)
F={'08':'08_ordered_stores/ordered_stores.cu','09':'09_tile_sizes/tile_sizes.cu','10':'10_sliding_rows/sliding_rows.cu','11':'11_split_k/split_k.cu','12':'12_tensor_cores/tensor_cores.cu','13':'13_three_products/three_products.cu'}
def v(base,name,*edits):
    s=open(f'{root}/{F[base]}').read()
    for a,b in edits:
        assert s.count(a)>=1,(base,name,a)
        s=s.replace(a,b)
    old='"'+os.path.dirname(F[base])+'"'
    assert s.count(old)==1
    s=s.replace(old,f'"{base}v_{name}"')
    open(f'variants/v{base}_{name}.cu','w').write(s)
def slots(base,was,n): v(base,'slots%d'%n,('constexpr int SLOTS = %d;'%was,'constexpr int SLOTS = %d;'%n))
slots('11',3,2)
slots('12',3,2); slots('12',3,4); slots('13',2,3)
for b in ('12','13'):
    v(b,'unroll2',('UNROLL_BY(1) for','UNROLL_BY(2) for'))
    v(b,'bk32',('constexpr int BK = 16; ','constexpr int BK = 32; '))
v('12','bk32_slots2',('constexpr int BK = 16; ','constexpr int BK = 32; '),('constexpr int SLOTS = 3;','constexpr int SLOTS = 2;'))
v('13','blocks3',('TM == 4 ? 4 : 2','TM == 4 ? 4 : TM == 8 ? 3 : 2'))
v('12','fewblocks',('TM <= 8 ? 4 : TM == 12 ? 3 : 2','TM == 4 ? 4 : TM == 8 ? 3 : 2'))
v('12','trunc',('= to_tf32(slot->x','= (slot->x'))
v('13','inside',('float d[4][4] = {};','float d[4][4]; UNROLL for (int j = 0; j < 4; ++j) { float *up = sum[m] + j * 2, *down = up + TN; d[j][0] = up[0], d[j][1] = up[1], d[j][2] = down[0], d[j][3] = down[1]; }'),
  ('up[0] += d[j][0], up[1] += d[j][1], down[0] += d[j][2], down[1] += d[j][3];','up[0] = d[j][0], up[1] = d[j][1], down[0] = d[j][2], down[1] = d[j][3];'))
# filters before inputs
for b in ('09','11','12'):
    s=open(f'{root}/{F[b]}').read()
    i=s.index('    Tap tap['); j=s.index('    UNROLL for (int i = 0; i < '+('Tile::W' if b=='12' else 'BM * BK')); k=s.index('    if (tid < BK) copy_async<16>')
    v(b,'filtersfirst',(s[i:k],s[j:k]+s[i:j]))
s=open(f'{root}/common/core/plan.cpp').read()
def r(a,b):
    global s
    assert s.count(a)==1,a
    s=s.replace(a,b)
r('#include <cstdlib>\n','#include <cstdlib>\n#include <cstdio>\n')
r('  double least = HUGE_VAL;\n','''  int forced_TM = 0, forced_parts = 0;
  if (const char* text = std::getenv("CONVLADDER_PLAN")) std::sscanf(text, "%d,%d", &forced_TM, &forced_parts);
  if (limit == 0) forced_TM = 0;  // asked for the smallest
  double least = HUGE_VAL;
''')
r('      const double cycles','      if (forced_TM > 0 && (TM != forced_TM || parts != forced_parts)) continue;\n      const double cycles')
r('  return best.TM > 0 ?','  if (forced_TM > 0 && best.TM == 0) throw InvalidArgument("no such plan");\n  return best.TM > 0 ?')
open('src/plan_forced.cpp','w').write(s)
print(len(os.listdir('variants')))
