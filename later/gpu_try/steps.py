import re,subprocess,sys,glob,tempfile
def body(f):
    t=open(f).read(); 
    t=re.sub(r'//.*','',t)
    return '\n'.join(l.rstrip() for l in t.split('\n') if l.strip())+'\n'
fs=sorted(glob.glob('[01][0-9]_*/*.cu'))
for a,b in zip(fs,fs[1:]):
    open('/tmp/a','w').write(body(a));open('/tmp/b','w').write(body(b))
    o=subprocess.run(['diff','/tmp/a','/tmp/b'],capture_output=True,text=True).stdout
    print(a,b,len(re.findall('^[<>]',o,re.M)), len(open(b).read().split('\n'))-1)
