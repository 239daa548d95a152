import subprocess,sys,re,collections
cub,pat=sys.argv[1:3]
t=subprocess.run(['cuobjdump','-sass',cub],capture_output=True,text=True).stdout
for fn in t.split('Function : ')[1:]:
    name=fn.split('\n')[0]
    if 'conv2d' not in name or pat not in name: continue
    ins=re.findall(r'/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\d+ )?([A-Z0-9_.]+)([^;]*);',fn)
    # find loop: backward BRA with largest span
    best=None
    for a,op,args in ins:
        if op.startswith('BRA'):
            m=re.search(r'0x([0-9a-f]+)',args)
            if m and int(m.group(1),16)<int(a,16):
                span=int(a,16)-int(m.group(1),16)
                if best is None or span>best[0]: best=(span,int(m.group(1),16),int(a,16))
    print(name[-60:],len(ins),'loop',best)
    c=collections.Counter(op.split('.')[0]+('.'+'.'.join(op.split('.')[1:3]) if op[:3] in('LDS','LDG','LD.','STL','LDL') else '') for a,op,args in ins if best and best[1]<=int(a,16)<=best[2])
    print(sum(c.values()),dict(c.most_common(30)))
