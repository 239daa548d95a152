"""fit.py SWEEP.csv LAYERS.csv STAGE(11|12|13|09): fits the constants of plan.cpp's cost() on the rows with tuned = 1.
Prints own / best forced for both halves, with the constants as they are and as fitted."""
import csv,math,random,sys
sweep,lay,want=sys.argv[1:4]
L={r['name']:r for r in csv.DictReader(l for l in open(lay) if l.strip() and l[0]!='#')}
T={}
for r in csv.DictReader(open(sweep)):
    if r['stage'][:3]==want+'_' and int(r['TM'])>0 and float(r['ms'])>0: T.setdefault(r['layer'],{})[(int(r['TM']),int(r['parts']))]=float(r['ms'])
def ext(l):
    g={k:int(v) for k,v in L[l].items() if k not in('name',)}
    P=(g['h']+2*g['pad_h']-g['dil_h']*(g['r']-1)-1)//g['stride_h']+1; Q=(g['w']+2*g['pad_w']-g['dil_w']*(g['s']-1)-1)//g['stride_w']+1
    G=g['groups']; return G,g['k']//G,g['c']//G*g['r']*g['s'],g['n']*P*Q,g['n']*g['k']*P*Q
E={l:ext(l) for l in T}
cd=lambda a,b:-(-a//b)
def cost(e,p,c):
    G,K,CRS,px,out=e; TM,parts=p
    share=cd(G*cd(K,8*TM)*cd(px,128)*parts,132)
    per=c['per_sm'] if not c.get('by_TM') else {4:4,8:c['p8'],12:c['p12'],16:2}[TM]
    taps=max(CRS//parts,32)+c['taps']
    loop=(share+c['lost']*cd(share,per))*taps*(TM+c['filters'])*8/c['per_cycle']
    return loop if parts==1 else loop*c['part']+c['add']+c['traffic']*parts*out/132
def score(c,names):
    s=0
    for l in names:
        p=min(T[l],key=lambda p:cost(E[l],p,c)); s+=math.log(T[l][p]/min(T[l].values()))
    return math.exp(s/len(names))
tuned=[l for l in T if L[l]['tuned']=='1']; rest=[l for l in T if L[l]['tuned']!='1']
start={'per_sm':3,'filters':2,'taps':30,'per_cycle':1,'part':1.05,'add':4000,'traffic':.5,'lost':1,'p8':4,'p12':3}
if want=='12': start.update(per_sm=2,filters=6,taps=60,per_cycle=2.5)
if want=='13': start.update(per_sm=2,filters=3,taps=40,per_cycle=1.2,p8=2,p12=2)
print(want,'layers',len(tuned),len(rest),'as it is: tuned %.4f others %.4f'%(score(start,tuned),score(start,rest)))
grid={'per_sm':[1,2,3,4],'filters':[0,1,2,3,4,6,8,12],'taps':[0,10,20,30,40,60,80,120,160],'per_cycle':[.8,1,1.2,1.5,2,2.5,3],'part':[1,1.02,1.05,1.1],'add':[2000,4000,6000,8000],'traffic':[.25,.5,.75,1],'lost':[0,.25,.5,.75,1],'p8':[2,3,4],'p12':[2,3]}
random.seed(1)
for by in (False,True):
    best=dict(start,by_TM=by); b=score(best,tuned)
    for go in range(6):
        c=dict(best) if go==0 else dict(best,**{k:random.choice(v) for k,v in random.sample(sorted(grid.items()),3)}); x=score(c,tuned); better=True
        while better:
            better=False
            for k in grid:
                if k in('p8','p12') and not by or k=='per_sm' and by: continue
                for v in grid[k]:
                    y=score(dict(c,**{k:v}),tuned)
                    if y<x-1e-6: c,x,better=dict(c,**{k:v}),y,True
        if x<b-1e-6: best,b=c,x
    print('per_sm by TM' if by else 'one per_sm','fitted: tuned %.4f others %.4f'%(b,score(best,rest)),{k:v for k,v in best.items()})
