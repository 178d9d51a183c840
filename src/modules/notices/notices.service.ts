import { Injectable } from '@nestjs/common';
import { NoticeStore } from '../../database/notice-store.js';
import { toPageRequest } from '../../http/page.dto.js';
import { type NoticeQuery, toNotice } from './notices.dto.js';

@Injectable()
export class NoticesService {
  constructor(private readonly notices: NoticeStore) {}

  async list(tenantId: string, query: NoticeQuery) {
    const { endpoint_id: endpointId, type } = query;
    const page = await this.notices.list(tenantId, { endpointId, type }, toPageRequest(query));
    return { data: page.rows.map(toNotice), next_cursor: page.nextCursor, prev_cursor: page.prevCursor };
  }
}
