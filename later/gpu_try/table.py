import csv,math,sys,os
out,cud,lay=sys.argv[1:4]
rows=[l for l in open(lay) if l.strip() and l[0]!='#']
TUNED={r['name']:r.get('tuned')=='1' for r in csv.DictReader(rows)}
C={r['layer']:{k:float(v) for k,v in r.items() if k!='layer' and v} for r in csv.DictReader(open(cud))}
def load(name):
    T={}
    try:
        for r in csv.DictReader(open(os.path.join(out,name))):
            T.setdefault(r['stage'],{}).setdefault(r['layer'],{})[(int(r['TM']),int(r['parts']))]=(float(r['ms']),float(r['error'])) if float(r['ms'])>0 else (-1.0,math.nan)
    except FileNotFoundError: pass
    return T
N,O=load('sweep_new.csv'),load('sweep_old.csv')
def geo(v): return math.exp(sum(map(math.log,v))/len(v)) if v else float('nan')
def nat(T,s): return {l:w[(0,0)][0] for l,w in T.get(s,{}).items() if w.get((0,0),(-1,))[0]>0}
def best(T,s): return {l:min(x[0] for x in w.values() if x[0]>0) for l,w in T.get(s,{}).items() if any(x[0]>0 for x in w.values())}
if O: print('calibration: this run / recorded, old 12 %.3f, old 12 TF32 %.3f, old 11 %.3f'%tuple(geo([nat(O,s)[l]/C[l][k] for l in nat(O,s) if l in C and k in C[l]]) for s,k in (('12_tensor_cores','old12'),('12_tensor_cores_tf32','old12_tf32'),('11_split_k','old11'))))
print('%-22s layers xcuDNN: own  best forced  | tuned own best | others own best | worst error'%'stage')
for T,tag in ((N,''),(O,'old ')):
    for s in sorted(T):
        if 'v_' in s: continue
        k='tf32' if (s.startswith('12') and not tag) or s.endswith('tf32') else 'fp32'
        n,b=nat(T,s),best(T,s)
        e=max((w[(0,0)][1] for w in T[s].values() if (0,0) in w and w[(0,0)][0]>0),default=0)
        x=lambda t,h: geo([C[l][k]/t[l] for l in t if k in C.get(l,{}) and h(l)])
        H=lambda l: True; T1=lambda l: TUNED.get(l); T0=lambda l: not TUNED.get(l)
        print('%-22s %3d   %.3f %.3f | %.3f %.3f | %.3f %.3f | %.1e'%(tag+s,len(n),x(n,H),x(b,H),x(n,T1),x(b,T1),x(n,T0),x(b,T0),e))
B=load(os.path.join(os.path.dirname(os.path.abspath(__file__)),'before.csv'))
print('this run / the run before, own plans:',' '.join('%s %.3f'%(s[:2],geo([nat(N,s)[l]/nat(B,s)[l] for l in nat(N,s) if l in nat(B,s)])) for s in sorted(B) if s in N))
print('variants: time of the stage / time of the variant (over 1: faster), geometric mean; min, max')
base={}
for s in N:
    if s[2:3]!='v': base[s[:2]]=s
for s in sorted(N):
    if s[2:3]!='v': continue
    a,b=nat(N,base[s[:2]]),nat(N,s)
    r=[a[l]/b[l] for l in b if l in a]
    if r: print('%-18s %.3f  %.2f %.2f  err %.1e'%(s,geo(r),min(r),max(r),max((w[(0,0)][1] for w in N[s].values() if w.get((0,0),(-1,))[0]>0),default=0)))
print('slower than the stage before by > 5 % (own plan; 12 is left out of 13\'s)')
order=[x for x in sorted(base.values())]
for a,b in zip(order,order[1:]):
    if b.startswith('13'): a=base.get('11',a)
    x,y=nat(N,a),nat(N,b)
    bad=sorted(((y[l]/x[l],l) for l in y if l in x and y[l]>1.05*x[l]),reverse=True)
    print(b,'after',a,len(bad),' '.join('%s %.2f'%(l,r) for r,l in bad[:6]))
for s in ('09','10','11','12','13'):
    n,b=nat(N,base.get(s,'')),best(N,base.get(s,''))
    if not n: continue
    low=sorted(((n[l]/b[l],l) for l in n if l in b),reverse=True)
    w=N[base[s]]
    print('%s own / best forced: geo %.3f; worst'%(s,geo([r for r,l in low])),' '.join('%s %.2f (TM %d, %d parts)'%((l,r)+min((x[0],p) for p,x in w[l].items() if x[0]>0)[1]) for r,l in low[:4]))
