package control

import "sync"

// places are the partitions of jobs that were triggered lately, as a hint.
type places struct {
	mu sync.Mutex
	at map[string]int // by namespace/name
}

const placesKept = 4096

func (p *places) of(name string) (partition int, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	partition, known = p.at[name]
	return partition, known
}

func (p *places) put(name string, partition int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil || len(p.at) >= placesKept {
		p.at = map[string]int{}
	}
	p.at[name] = partition
}
